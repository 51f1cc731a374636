"""Code sent to remote Spark workers, and errors when Spark does not start."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from broker.records import decoder
from kctl.cli.errors import CliError
from kctl.spark.engine import session
from kctl.spark.engine.own_code import own_code
from kctl.spark.engine.scratch import scratch_directory
from kctl.spark.engine.session import SparkOptions, resilient_master, spark_session


def imported_from_zip(archive: Path, module: str, cwd: Path) -> str:
    """The file of a module, imported with the zip file first in the path, as in a worker."""
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import kctl.spark.execution.task; "
        f"import {module} as module; print(module.__file__)"
    )
    command = [sys.executable, "-P", "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_regression_worker_with_the_same_kctl_uses_the_compiled_decoder(tmp_path: Path) -> None:
    archive = own_code(tmp_path)
    found = imported_from_zip(archive, "broker.records.decoder", tmp_path)
    assert found == decoder.__file__


def test_worker_with_another_kctl_uses_the_code_of_the_driver(tmp_path: Path) -> None:
    ours = own_code(tmp_path)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "kctl-code.zip"
    with zipfile.ZipFile(ours) as source, zipfile.ZipFile(other, "w") as changed:
        for name in source.namelist():
            text = source.read(name).decode()
            changed.writestr(name, text.replace("'__init__.py': ", "'__init__.py': 1 + "))
    found = imported_from_zip(other, "broker.records.decoder", tmp_path)
    assert found == f"{other}/broker/records/decoder.py"


def test_missing_artifact_is_named(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("x\n:: org.example#nosuch;9.9: not found\njava.lang.RuntimeError: exited\n")
    error = session._not_started(RuntimeError("JAVA_GATEWAY_EXITED"), log)
    assert error.message == "Spark does not start: org.example#nosuch;9.9: not found"


def test_missing_pyspark_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise CliError("PySpark is not installed", "pip install 'kctl[spark]'")

    monkeypatch.setattr(session, "pyspark_jars", missing)
    with pytest.raises(CliError, match="PySpark is not installed"), spark_session(SparkOptions()):
        pass


@pytest.mark.parametrize(
    ("given", "used"),
    [
        (None, "local[*,3]"),
        ("local", "local[1,3]"),
        ("local[2]", "local[2,3]"),
        ("local[*]", "local[*,3]"),
        ("local[2,5]", "local[2,5]"),
        ("spark://h:7077", "spark://h:7077"),
    ],
)
def test_regression_local_masters_repeat_failed_tasks(given: str | None, used: str) -> None:
    assert resilient_master(given) == used


@pytest.mark.parametrize(("master", "is_local"), [("local[*,3]", True), ("spark://h:7077", False)])
def test_local_masters_are_recognized(master: str, is_local: bool) -> None:
    assert SparkOptions(master).is_local is is_local


def test_regression_scratch_directory_of_a_killed_run_is_removed_by_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import tempfile, time; from kctl.spark.engine.scratch import scratch_directory\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "with scratch_directory() as path:\n"
        "    print(path, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        left = Path(running.stdout.readline().decode().strip())
        os.utime(left / "lock", (0, 0))
        with scratch_directory():
            assert left.exists()  # its owner runs
        running.kill()
    (tmp_path / "kctl-spark-other").mkdir()
    with scratch_directory() as here:
        found = set(tmp_path.iterdir())
        assert found == {here, tmp_path / "kctl-spark-other"}  # without a lock: not known
    assert not here.exists()
