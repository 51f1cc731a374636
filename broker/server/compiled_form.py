"""Which modules of this process run compiled, for the log: figures of a bench depend on it."""

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

_SUFFIX = EXTENSION_SUFFIXES[0]


def compiled_modules(package: str = "broker") -> list[str]:
    """The loaded modules of the package that were compiled (setup.py lists which may be)."""
    return sorted(
        name
        for name, module in sys.modules.items()
        if name.startswith(f"{package}.") and str(module.__file__).endswith(_SUFFIX)
    )


def is_stale(compiled: Path) -> bool:
    """Whether the source beside a compiled module was changed later."""
    source = compiled.with_name(compiled.name.removesuffix(_SUFFIX) + ".py")
    return source.exists() and source.stat().st_mtime > compiled.stat().st_mtime


def describe_form() -> str:
    """The number of compiled modules, and those whose source is newer."""
    names = compiled_modules()
    stale = [name for name in names if is_stale(Path(str(sys.modules[name].__file__)))]
    told = f"compiled_modules={len(names)}"
    return f"{told} older_than_source={','.join(stale)}" if stale else told
