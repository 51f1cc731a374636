"""A Spark session for one run: finds Java, redirects logs, ships our code to workers."""

import importlib.util
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kctl.cli.errors import CliError
from kctl.cli.interrupts import ctrl_c_noted
from kctl.java import java_environment, pyspark_jars

DEFAULT_MASTER = "local[*,3]"
"""All cores of this machine; the run fails when a task has failed three times."""


@dataclass(frozen=True)
class SparkOptions:
    """Options of a Spark session."""

    master: str = DEFAULT_MASTER
    conf: Mapping[str, str] = field(default_factory=dict)
    py_files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Maven coordinates of jars that Spark downloads."""
    jars: tuple[str, ...] = ()
    is_verbose: bool = False
    is_light: bool = False
    """Whether the JVM has little work, because tasks run in Python."""

    @property
    def is_local(self) -> bool:
        """Whether the tasks run on this machine."""
        return self.master.startswith("local")


@contextmanager
def spark_session(options: SparkOptions) -> Iterator[Any]:
    """A Spark session for the block; an active session of this process is used and not stopped.

    Output of Java and Spark goes to stderr with `-v`, otherwise to a file, from which the error is
    shown if Spark does not start.
    """
    pyspark_jars()  # CliError if PySpark is not installed
    os.environ.update(java_environment())
    # In a session started from Python, this variable alone decides the Python of the workers.
    if named := options.conf.get("spark.pyspark.python"):
        os.environ["PYSPARK_PYTHON"] = named
    elif options.is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need our installed packages
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    with TemporaryDirectory(prefix="kctl-spark-") as scratch:
        log_file = Path(scratch) / "spark.log"
        spark = _start(options, Path(scratch), log_file)
        try:
            yield spark
        finally:
            spark.stop()


def _start(options: SparkOptions, scratch: Path, log_file: Path) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("kctl spark-export").master(options.master)
    for key, value in (_defaults(options) | dict(options.conf)).items():
        builder = builder.config(key, value)
    try:
        with ctrl_c_noted() as interrupted:  # an interrupted start would leave a JVM running
            if options.is_verbose:
                spark = builder.getOrCreate()
            else:
                with _stderr_to(log_file):
                    spark = builder.getOrCreate()
                    spark.sparkContext.setLogLevel("ERROR")
    except Exception as error:
        if interrupted.is_set():  # a second interrupt, which was not deferred
            raise KeyboardInterrupt from error
        said = log_file.read_text(errors="replace").splitlines() if log_file.exists() else []
        reason = next((line for line in reversed(said) if "rror" in line), str(error))
        raise CliError(
            f"Spark does not start: {reason.strip()}", "-v shows the complete output"
        ) from error
    if interrupted.is_set():
        spark.stop()
        raise KeyboardInterrupt
    if not options.is_local:
        spark.sparkContext.addPyFile(str(own_code(scratch)))
    for path in options.py_files:
        spark.sparkContext.addPyFile(path)
    return spark


def _defaults(options: SparkOptions) -> dict[str, str]:
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if options.packages:
        settings["spark.jars.packages"] = ",".join(options.packages)
    if options.jars:
        settings["spark.jars"] = ",".join(options.jars)
    if options.is_local and options.is_light:
        # Starts faster, and leaves the cores to the tasks.
        settings["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    if options.is_local:
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return settings


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Redirect stderr of processes started in the block, such as the JVM, to a file."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def own_code(scratch: Path) -> Path:
    """kctl and broker as a zip file for workers on other machines, which need only dependencies."""
    path = scratch / "kctl-code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("broker", "kctl"):
            spec = importlib.util.find_spec(package)
            root = Path(str(spec and spec.origin)).parent
            for source in sorted(root.rglob("*.py")):
                archive.write(source, source.relative_to(root.parent))
    return path
