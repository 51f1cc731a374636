"""Import rules: packages import downwards only, and the broker does not know kctl.

This is the one list of the layers of both programs. Imports are read from the source with `ast`,
so imports inside functions count too.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# From top to bottom. A module may import its own package and any package of a lower layer, so
# there are no cycles between packages.
BROKER_LAYERS = [
    {"__main__"},
    {"server"},
    {"admin"},
    {"api"},
    {"group", "txn"},
    {"replica", "controller"},
    {"log", "metadata", "net", "metadata_cache"},
    {"records", "security", "quota"},  # decisions and formats, no znodes and no sockets
    {"protocol"},
    {"config", "metrics", "assignment", "tasks"},
    {"topic_names"},
    {
        *("model", "java_properties", "java_strings", "errors", "clock", "system_calls"),
        "__version__",
    },
]
KCTL_LAYERS = [
    {"__main__", "docs", "pytest_plugin"},
    {"app"},
    {"commands"},
    # Long-running work and its siblings; one imports another only in this order.
    {"restore"},
    {"spark", "top"},
    {"operations", "streaming", "dev"},
    {"dump"},
    {"records", "registry"},
    {"admin", "plans"},  # plans: pure functions of the model
    {"views", "java"},
    {"cli"},
    {"model", "__version__"},
]
ONLY_MODEL = {"plans", "model"}
"""Packages of kctl that import no other package of kctl than `model`."""


def by_package(layers: list[set[str]]) -> dict[str, int]:
    """The number of each package's layer, counted from the top."""
    return {package: number for number, packages in enumerate(layers) for package in packages}


LAYER_OF = {"broker": by_package(BROKER_LAYERS), "kctl": by_package(KCTL_LAYERS)}

KCTL_MAY_USE = {
    "broker.__version__",
    "broker.admin.exposition",
    "broker.admin.http_server",
    "broker.protocol",
    "broker.records",
    "broker.log",
    "broker.net.authentication",
    "broker.net.client",
    "broker.net.failures",
    "broker.security",
    "broker.assignment",
    "broker.java_properties",
    "broker.java_strings",
    "broker.model",
    "broker.errors",
    "broker.topic_names",
}
# Modules that read and write znodes use the broker's own code for that.
KCTL_MAY_ALSO_USE = {
    f"kctl.admin.{module}": {"broker.metadata"}
    for module in (
        *("metadata_copy", "metadata_place", "old_groups", "user_znodes"),
        *("znode_kinds", "znode_watching", "znodes"),
    )
} | {
    "kctl.docs.__main__": {"broker.config"},
    "kctl.docs.broker_page": {"broker.__main__"},
    "kctl.docs.broker_completion": {"broker.__main__", "broker.config"},
    "kctl.docs.reference_pages": {"broker.api"},
}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that `path` names in an import; `from a import b` counts as a.b."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: relative import"
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(names)


def package_of(dotted: str) -> str:
    """`broker.log.segment` → `log`; a name of the top-level package itself is `__version__`'s."""
    name = dotted.split(".")[1]
    return "__version__" if name.startswith("__version") else name


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def is_within(dotted: str, packages: set[str]) -> bool:
    return any(dotted == package or dotted.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("path", modules("broker") + modules("kctl"), ids=name_of)
def test_packages_import_downwards_only(path: Path) -> None:
    program = path.relative_to(ROOT).parts[0]
    layer_of = LAYER_OF[program]
    if path == ROOT / program / "__init__.py":
        assert not [name for name in imports(path) if name.startswith(program)]
        return
    here = package_of(name_of(path))
    assert here in layer_of, f"add the package {here} to a layer in {Path(__file__).name}"
    for name in imports(path):
        if is_within(name, {program}):
            there = package_of(name)
            assert there == here or layer_of[there] > layer_of[here], f"{here} imports {name}"


@pytest.mark.parametrize("path", modules("broker"), ids=name_of)
def test_broker_does_not_import_kctl(path: Path) -> None:
    for name in imports(path):
        assert not is_within(name, {"kctl", "bench", "tests"}), f"the broker imports {name}"


@pytest.mark.parametrize("path", modules("kctl"), ids=name_of)
def test_kctl_imports_only_the_broker_packages_made_for_it(path: Path) -> None:
    allowed = KCTL_MAY_USE | KCTL_MAY_ALSO_USE.get(name_of(path), set())
    for name in imports(path):
        assert not is_within(name, {"bench", "tests"})
        if is_within(name, {"broker"}):
            assert is_within(name, allowed), f"kctl imports {name}"


@pytest.mark.parametrize("path", modules("kctl"), ids=name_of)
def test_plans_and_model_import_only_the_model(path: Path) -> None:
    here = path.relative_to(ROOT).parts[1]
    if here in ONLY_MODEL:
        for name in imports(path):
            if is_within(name, {"kctl"}):
                assert package_of(name) in {here, "model"}, f"{here} imports {name}"


@pytest.mark.parametrize("path", modules("kctl/commands"), ids=name_of)
def test_commands_define_no_columns(path: Path) -> None:
    assert "kctl.cli.tables.Column" not in imports(path), "define the columns in kctl/views"


@pytest.mark.parametrize("path", modules("broker") + modules("kctl"), ids=name_of)
def test_no_module_imports_click(path: Path) -> None:
    assert not [name for name in imports(path) if is_within(name, {"click", "typer._click"})]


def test_rules_see_imports_of_every_form(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("import a.b\nfrom c import d\ndef f():\n    import pyspark.sql as s\n")
    assert imports(source) == ("a.b", "c.d", "pyspark.sql")
    assert is_within("pyspark.sql", {"pyspark"})
    assert not is_within("pysparkling", {"pyspark"})
