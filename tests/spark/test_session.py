"""What a Spark elsewhere gets from us, and how a Spark that does not start is reported."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kctl.errors import CliError
from kctl.spark import session
from kctl.spark.session import SparkOptions, own_code, spark_session


def test_own_code_is_all_that_a_worker_needs(tmp_path: Path) -> None:
    archive = own_code(tmp_path)
    with zipfile.ZipFile(archive) as opened:
        names = set(opened.namelist())
    assert {"kctl/spark/task.py", "broker/records/decoder.py", "broker/__init__.py"} <= names
    # Isolated from this directory, so that only the zip can be where it comes from.
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); import kctl.spark.task as t; "
    command = [sys.executable, "-P", "-c", code + "print(t.__file__)"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert answer.stdout.startswith(str(archive))


def test_missing_pyspark_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise CliError("PySpark is not installed", "pip install 'kctl[spark]'")

    monkeypatch.setattr(session, "pyspark_jars", missing)
    with pytest.raises(CliError, match="PySpark is not installed"), spark_session(SparkOptions()):
        pass


@pytest.mark.parametrize(("master", "is_local"), [("local[*,3]", True), ("spark://h:7077", False)])
def test_only_local_masters_run_here(master: str, is_local: bool) -> None:
    assert SparkOptions(master).is_local is is_local
