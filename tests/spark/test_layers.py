"""The sub-packages of kctl.spark import downwards only, so a task needs no Spark in the driver."""

from pathlib import Path

import pytest

from tests.docs.test_import_rules import ROOT, imports, name_of

SPARK = ROOT / "kctl" / "spark"
# From top to bottom: a module imports its own sub-package and lower ones.
LAYERS = [
    {"driver", "verify", "data_source", "listing"},
    {"compaction"},
    {"summary", "manifest_checks"},
    {"reading_back"},
    {"execution"},
    {"publishing"},
    {"engine"},
    {"writing"},
    {"reading"},
    {"planning"},
    {"decoding"},
]
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}
WITHOUT_SPARK = {"decoding", "planning", "reading", "writing"}


@pytest.mark.parametrize("path", sorted(SPARK.rglob("*.py")), ids=name_of)
def test_sub_packages_import_downwards_only(path: Path) -> None:
    here = path.relative_to(SPARK).parts[0].removesuffix(".py")
    if here == "__init__":
        return
    for name in imports(path):
        if name.startswith("kctl.spark."):
            there = name.split(".")[2]
            assert there == here or LAYER_OF[there] > LAYER_OF[here], f"{here} imports {name}"
        if here in WITHOUT_SPARK:
            assert not name.startswith("pyspark"), f"{here} imports {name}"
