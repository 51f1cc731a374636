"""A Spark session for one run: Java found, logs kept back, our code along with it."""

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

from kctl.errors import CliError
from kctl.java import java_environment, pyspark_jars
from kctl.streaming.interrupts import ctrl_c_noted

DEFAULT_MASTER = "local[*,3]"
"""Every core of this machine; a task may fail twice before the run does."""


@dataclass(frozen=True)
class SparkOptions:
    """Which Spark, and how."""

    master: str = DEFAULT_MASTER
    conf: Mapping[str, str] = field(default_factory=dict)
    py_files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Maven coordinates of what Spark is to get by itself."""
    jars: tuple[str, ...] = ()
    is_verbose: bool = False
    is_light: bool = False
    """Whether Java has little to do, because tasks do their work in Python."""

    @property
    def is_local(self) -> bool:
        """Whether the tasks run on this machine."""
        return self.master.startswith("local")


@contextmanager
def spark_session(options: SparkOptions) -> Iterator[Any]:
    """Spark while the block runs; a session that this process has already is used, and kept.

    What Java and Spark say goes to stderr with `-v`, else to a file whose end is shown only if
    Spark does not start.
    """
    pyspark_jars()  # says what to install where PySpark is not
    os.environ.update(java_environment())
    # Spark takes the workers' Python from here alone when it is started by a Python program.
    if named := options.conf.get("spark.pyspark.python"):
        os.environ["PYSPARK_PYTHON"] = named
    elif options.is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need what we have installed
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
        with ctrl_c_noted() as interrupted:  # half a start leaves a Java that no one stops
            if options.is_verbose:
                spark = builder.getOrCreate()
            else:
                with _stderr_to(log_file):
                    spark = builder.getOrCreate()
                    spark.sparkContext.setLogLevel("ERROR")
    except Exception as error:
        if interrupted.is_set():  # again, and this time in the middle of something
            raise KeyboardInterrupt from error
        said = log_file.read_text(errors="replace").splitlines() if log_file.exists() else []
        reason = next((line for line in reversed(said) if "rror" in line), str(error))
        raise CliError(
            f"Spark does not start: {reason.strip()}", "-v shows all that it says"
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
        # It then starts sooner, and leaves the cores to the tasks.
        settings["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    if options.is_local:
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return settings


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Let whatever is started inside, Java above all, write its stderr to a file for good."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def own_code(scratch: Path) -> Path:
    """kctl and broker as a zip for workers on other machines, which need only our dependencies."""
    path = scratch / "kctl-code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("broker", "kctl"):
            spec = importlib.util.find_spec(package)
            root = Path(str(spec and spec.origin)).parent
            for source in sorted(root.rglob("*.py")):
                archive.write(source, source.relative_to(root.parent))
    return path
