"""The rooms of DESIGN, held: imports go downwards, the broker knows nothing of kctl.

Read from the source with `ast`, so that an import inside a function counts too.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# From the top to the ground. A module may import its own room and anything on a lower floor.
FLOORS = [
    {"__main__"},
    {"server"},
    {"coordination"},
    {
        "background",
        "controlled",
        "controlled_shutdown",
        "identity",
        "inter_broker",
        "membership",
        "stores",
    },
    {"api"},
    {"group", "txn"},
    {"replica", "controller"},
    {"log", "metadata", "net", "security", "metadata_cache"},
    {"records"},
    {"protocol"},
    {"config", "metrics", "assignment"},
    {"model", "topic_names", "java_strings", "errors", "clock", "__version__"},
]
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

KCTL_MAY_USE = {
    "broker.__version__",
    "broker.protocol",
    "broker.records",
    "broker.log",
    "broker.net.authentication",
    "broker.net.client",
    "broker.net.failures",
    "broker.security",
    "broker.assignment",
    "broker.model",
    "broker.errors",
}
# What reads and writes znodes does so with the broker's own code for them.
KCTL_MAY_ALSO_USE = {
    f"kctl.admin.{module}": {"broker.metadata"}
    for module in ("metadata_copy", "metadata_place", "old_groups", "znode_kinds", "znodes")
}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every module that `path` names in an import; `from a import b` counts as a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(dotted: str) -> str:
    """`broker.log.segment` → `log`."""
    return dotted.split(".")[1]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def is_within(dotted: str, packages: set[str]) -> bool:
    return any(dotted == package or dotted.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("path", modules("broker"), ids=name_of)
def test_broker_rooms_import_downwards_only(path: Path) -> None:
    if path == ROOT / "broker" / "__init__.py":
        assert not [name for name in imports(path) if name.startswith("broker")]
        return
    here = room(name_of(path))
    assert here in FLOOR_OF, f"give the room {here} a floor in {Path(__file__).name}"
    for name in imports(path):
        assert not is_within(name, {"kctl", "bench", "tests"}), f"{name} is not the broker's"
        if is_within(name, {"broker"}):
            there = room(name)
            assert there == here or FLOOR_OF[there] > FLOOR_OF[here], f"{here} imports {name}"


@pytest.mark.parametrize("path", modules("kctl"), ids=name_of)
def test_kctl_uses_only_the_rooms_made_for_it(path: Path) -> None:
    allowed = KCTL_MAY_USE | KCTL_MAY_ALSO_USE.get(name_of(path), set())
    for name in imports(path):
        assert not is_within(name, {"bench", "tests"})
        if is_within(name, {"broker"}):
            assert is_within(name, allowed), f"kctl imports {name}"


@pytest.mark.parametrize("path", modules("broker") + modules("kctl"), ids=name_of)
def test_no_module_imports_click(path: Path) -> None:
    assert not [name for name in imports(path) if is_within(name, {"click", "typer._click"})]


def test_rules_see_imports_of_every_form(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("import a.b\nfrom c import d\ndef f():\n    import pyspark.sql as s\n")
    assert list(imports(source)) == ["a.b", "c.d", "pyspark.sql"]
    assert is_within("pyspark.sql", {"pyspark"})
    assert not is_within("pysparkling", {"pyspark"})
