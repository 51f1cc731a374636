"""Code sent to remote Spark workers, and errors when Spark does not start."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kctl.cli.errors import CliError
from kctl.spark.engine import session
from kctl.spark.engine.session import SparkOptions, own_code, spark_session


def test_zip_contains_all_code_that_a_worker_needs(tmp_path: Path) -> None:
    archive = own_code(tmp_path)
    with zipfile.ZipFile(archive) as opened:
        names = set(opened.namelist())
    assert {
        "kctl/spark/execution/task.py",
        "broker/records/decoder.py",
        "broker/__init__.py",
    } <= names
    # Isolated from this directory, so that only the zip can be where it comes from.
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import kctl.spark.execution.task as t; "
    )
    command = [sys.executable, "-P", "-c", code + "print(t.__file__)"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert answer.stdout.startswith(str(archive))


def test_missing_pyspark_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise CliError("PySpark is not installed", "pip install 'kctl[spark]'")

    monkeypatch.setattr(session, "pyspark_jars", missing)
    with pytest.raises(CliError, match="PySpark is not installed"), spark_session(SparkOptions()):
        pass


@pytest.mark.parametrize(("master", "is_local"), [("local[*,3]", True), ("spark://h:7077", False)])
def test_local_masters_are_recognized(master: str, is_local: bool) -> None:
    assert SparkOptions(master).is_local is is_local
