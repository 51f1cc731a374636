"""A Spark standalone cluster: a master and a worker."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from kctl.java import java_environment, pyspark_jars
from tests.spark.support import LOGS, exported, kafka_printed, sizes
from tests.support.processes import ServerProcess, free_port

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(500)]


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python with our dependencies but without kctl: it ignores the editable install."""
    packages = Path(pa.__file__).parents[1]
    path = tmp_path / "python"
    command = f'PYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"'
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a Spark master that has a worker."""
    home = pyspark_jars().parent
    environ = java_environment(os.environ) | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    # What the tests run with must not reach the workers.
    environ.pop("PYTHONPATH", None)
    start = [str(home / "bin" / "spark-class")]
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    names = ["--host", "127.0.0.1", "--webui-port", "0"]
    deploy = "org.apache.spark.deploy"
    command = [*start, f"{deploy}.master.Master", *names, "--port", str(port)]
    with ServerProcess(command, tmp_path / "master.log", environ) as server:
        server.wait_for_port(port)
        size = ["--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "work")]
        command = [*start, f"{deploy}.worker.Worker", *names, *size, address]
        with ServerProcess(command, tmp_path / "worker.log", environ) as worker:
            worker.wait_for_line("Successfully registered with master")
            yield address


def test_workers_without_kctl_receive_its_code(
    master: str, bare_python: Path, tmp_path: Path
) -> None:
    lacking = subprocess.run([bare_python, "-c", "import kctl"], capture_output=True, cwd=tmp_path)
    assert b"No module named" in lacking.stderr
    settings = {
        "spark.pyspark.python": bare_python,
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
    }
    arguments = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    source = ["rolled", "--from-dir", str(LOGS), "--to", str(tmp_path / "out")]
    answer = subprocess.run(
        [sys.executable, "-m", "kctl", "spark-export", *source, "--master", master, *arguments],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert answer.returncode == 0, answer.stderr
    assert sizes(exported(tmp_path / "out")) == kafka_printed("magic2", "rolled-0")
    (application,) = (tmp_path / "work").iterdir()
    assert application.name.startswith("app-")
