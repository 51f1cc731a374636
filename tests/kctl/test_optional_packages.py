"""Commands that need an extra of kctl name it where it is not installed."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kctl.app import EXTRAS

ROOT = Path(__file__).parents[2]

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({packages!r}))  # None: importing the package fails
from kctl.app import app
app({arguments!r})
"""


def run_without(packages: list[str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    code = WITHOUT.format(packages=packages, arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["spark-export", "orders", "--to", "here", "-b", "localhost:1"],
        ["spark-export", "orders", "--to", "here", "-b", "localhost:1", "--engine", "local"],
        ["spark-export", "list", "here"],
        ["spark-export", "verify", "here", "--engine", "local"],
        ["spark-export", "compact", "here"],
        ["import", "here", "-b", "localhost:1"],
    ],
)
def test_regression_export_without_pyarrow_names_the_extra(arguments: list[str]) -> None:
    result = run_without(["pyarrow", "pyspark"], *arguments)
    assert result.returncode == 1, result.stderr
    assert result.stderr.splitlines() == [
        "error: pyarrow is not installed",
        " hint: pip install 'kctl[spark]'",
    ]


def test_help_needs_no_extra() -> None:
    for command in ("spark-export", "import", "registry", "top"):
        result = run_without(list(EXTRAS), command, "--help")
        assert result.returncode == 0, result.stderr


def test_extras_contain_the_packages_that_messages_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    distributions = {"google": "protobuf", "grpc_tools": "grpcio-tools"}
    for package, extra in EXTRAS.items():
        name = distributions.get(package, package)
        declared = project["optional-dependencies"][extra]
        assert any(one.startswith(name) for one in declared), package
