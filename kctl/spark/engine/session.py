"""A Spark session for one run: finds Java, redirects logs, ships our code to workers."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kctl.cli.errors import CliError
from kctl.cli.interrupts import ctrl_c_noted
from kctl.java import java_environment, pyspark_jars
from kctl.spark.engine.class_archive import class_archive_options
from kctl.spark.engine.own_code import own_code
from kctl.spark.engine.scratch import scratch_directory

DEFAULT_MASTER = "local[*,3]"
"""All cores of this machine; the run fails when a task has failed three times."""
_WITHOUT_RETRIES = re.compile(r"local(?:\[(\d+|\*)\])?")
"""Masters with which Spark does not repeat a failed task."""


def resilient_master(master: str | None) -> str:
    """The master, with three attempts at a task where Spark would make one: `local[2]`."""
    if master is None:
        return DEFAULT_MASTER
    found = _WITHOUT_RETRIES.fullmatch(master)
    return f"local[{found[1] or 1},3]" if found else master


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
    """A Spark session for the block; an active session of this process is used and not stopped."""
    with spark_context(options) as context:
        from pyspark.sql import SparkSession

        if (running := SparkSession.getActiveSession()) is not None:
            yield running
            return
        spark = SparkSession(context)
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def spark_context(options: SparkOptions) -> Iterator[Any]:
    """A Spark context for the block; an active context of this process is used and not stopped.

    Enough for jobs without SQL, and started in 60 % of the CPU time of a session. Output of Java
    and Spark goes to stderr with `-v`, otherwise to a file, from which the error is shown if Spark
    does not start.
    """
    pyspark_jars()  # CliError if PySpark is not installed
    os.environ.update(java_environment())
    # In a session started from Python, this variable alone decides the Python of the workers.
    if named := options.conf.get("spark.pyspark.python"):
        os.environ["PYSPARK_PYTHON"] = named
    elif options.is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need our installed packages
    from pyspark import SparkContext

    if (running := SparkContext._active_spark_context) is not None:
        yield running
        return
    with scratch_directory() as scratch:
        context = _start(options, scratch)
        try:
            yield context
        finally:
            context.stop()


def _start(options: SparkOptions, scratch: Path) -> Any:
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setAppName("kctl spark-export").setMaster(options.master)
    conf.setAll(list((_defaults(options) | dict(options.conf)).items()))
    log_file = scratch / "spark.log"
    try:
        with ctrl_c_noted() as interrupted:  # an interrupted start would leave a JVM running
            if options.is_verbose:
                context = SparkContext(conf=conf)
            else:
                with _stderr_to(log_file):
                    context = SparkContext(conf=conf)
                    context.setLogLevel("ERROR")
    except Exception as error:
        if interrupted.is_set():  # a second interrupt, which was not deferred
            raise KeyboardInterrupt from error
        raise _not_started(error, log_file) from error
    if interrupted.is_set():
        context.stop()
        raise KeyboardInterrupt
    if not options.is_local:
        context.addPyFile(str(own_code(scratch)))
    for path in options.py_files:
        context.addPyFile(path)
    return context


def _not_started(error: Exception, log_file: Path) -> CliError:
    """The reason in what Java wrote; a missing Maven artifact is not in an error line."""
    said = log_file.read_text(errors="replace").splitlines() if log_file.exists() else []
    missing = (line for line in said if "unresolved dependency" in line or "not found" in line)
    reason = next(missing, None)
    reason = reason or next((line for line in reversed(said) if "rror" in line), str(error))
    words = reason.strip(" \t:")
    return CliError(f"Spark does not start: {words}", "-v shows the complete output")


def _defaults(options: SparkOptions) -> dict[str, str]:
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if options.packages:
        settings["spark.jars.packages"] = ",".join(options.packages)
    if options.jars:
        settings["spark.jars"] = ",".join(options.jars)
    if options.is_local and options.is_light:
        # Starts faster, and leaves the cores to the tasks.
        archive = class_archive_options()
        settings["spark.driver.extraJavaOptions"] = (
            f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {archive}".rstrip()
        )
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
