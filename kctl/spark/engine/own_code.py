"""kctl and broker as a zip file for workers on other machines, which need only dependencies.

Python cannot load compiled modules from a zip file, and the interpreted decoder of record batches
takes 2.4 times as long. So a worker that has the same kctl installed uses the installed one: the
packages in the zip replace their search path by that of the installed packages if those consist of
the same source files.
"""

import importlib.util
import zipfile
from pathlib import Path
from typing import Final

PACKAGES: Final = ("broker", "kctl")

# Appended to the `__init__` of the packages in the zip; runs in workers.
_PREFER_INSTALLED: Final = """

def _prefer_installed(sizes):
    import os, sys
    from importlib.machinery import PathFinder

    here = __file__.partition(".zip" + os.sep)[0] + ".zip"
    elsewhere = [path for path in sys.path if path != here]
    for finder in sys.meta_path:
        try:
            if finder is PathFinder:
                spec = finder.find_spec(__name__, elsewhere)
            else:
                spec = finder.find_spec(__name__, None)
        except Exception:
            continue
        for root in (spec and spec.submodule_search_locations) or ():
            try:
                if all(os.stat(os.path.join(root, p)).st_size == n for p, n in sizes.items()):
                    return [root]
            except OSError:
                pass
    return __path__


__path__ = _prefer_installed({sizes!r})
"""


def own_code(scratch: Path) -> Path:
    """Write the zip file; returns its path."""
    path = scratch / "kctl-code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            _add_package(archive, package)
    return path


def _add_package(archive: zipfile.ZipFile, package: str) -> None:
    spec = importlib.util.find_spec(package)
    root = Path(str(spec and spec.origin)).parent
    sources = sorted(root.rglob("*.py"))
    sizes = {str(source.relative_to(root)): source.stat().st_size for source in sources}
    for source in sources:
        if source == root / "__init__.py":
            added = _PREFER_INSTALLED.replace("{sizes!r}", repr(sizes))
            archive.writestr(f"{package}/__init__.py", source.read_text() + added)
        else:
            archive.write(source, source.relative_to(root.parent))
