"""The decoder in both of its forms, so that every test of it runs on both."""

import importlib.util
from types import ModuleType

from broker.records import decoder as installed

IS_COMPILED = not str(installed.__file__).endswith(".py")


def pure_decoder() -> ModuleType:
    """decoder.py run as it is, whether or not a compiled form is installed."""
    source = importlib.util.find_spec("broker.records").submodule_search_locations[0]  # type: ignore[union-attr,index]
    spec = importlib.util.spec_from_file_location("pure_decoder", f"{source}/decoder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PURE = pure_decoder()
FORMS = [PURE, installed] if IS_COMPILED else [PURE]
FORM_NAMES = ["pure", "compiled"][: len(FORMS)]
