"""The compiled modules in both forms, so that every test runs on both."""

import importlib.util
from pathlib import Path
from types import ModuleType

from broker import records
from broker.records import decoder, scan


def pure(name: str) -> ModuleType:
    """A module of broker.records run from its source, whether or not a compiled form exists."""
    source = Path(records.__path__[0]) / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"pure_{name}", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_compiled(module: ModuleType) -> bool:
    """Whether the compiled form is installed."""
    return not str(module.__file__).endswith(".py")


PURE = pure("decoder")
FORMS = [PURE, decoder] if is_compiled(decoder) else [PURE]
FORM_NAMES = ["pure", "compiled"][: len(FORMS)]

PURE_SCAN = pure("scan")
SCANS = [PURE_SCAN, scan] if is_compiled(scan) else [PURE_SCAN]
