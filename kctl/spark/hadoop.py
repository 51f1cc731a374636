"""Paths of any file system that Spark can write: hdfs://, s3a://, viewfs://, …

Hadoop's FileSystem does the work, in the driver's JVM; what it is asked for are a few names and
small texts, never data. The methods are called as those of pathlib, so that `target` and `staging`
need not know which of the two they have.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from kctl.errors import CliError, ExitStatus

Answer = TypeVar("Answer")

JARS = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
}
"""Where file systems are found that do not come with Spark, by scheme."""


class HadoopPath:
    """One path; operations raise OSError, as those of pathlib do."""

    def __init__(self, jvm: Any, file_system: Any, path: Any) -> None:
        self._jvm = jvm
        self._file_system = file_system
        self._path = path

    @classmethod
    def open(cls, spark: Any, location: str) -> "HadoopPath":
        """The path that `location` names; CliError if Spark has no file system for it."""
        context = spark.sparkContext
        jvm = context._jvm
        try:
            path = jvm.org.apache.hadoop.fs.Path(location)
            file_system = path.getFileSystem(context._jsc.hadoopConfiguration())
            return cls(jvm, file_system, file_system.makeQualified(path))
        except Exception as error:
            hadoop = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
            raise _no_file_system(location, reason_of(error), hadoop) from error

    def __str__(self) -> str:
        return str(self._path.toString())

    def __truediv__(self, name: str) -> "HadoopPath":
        below = self._jvm.org.apache.hadoop.fs.Path(self._path, name)
        return HadoopPath(self._jvm, self._file_system, below)

    @property
    def name(self) -> str:
        """The last part."""
        return str(self._path.getName())

    @property
    def parent(self) -> "HadoopPath":
        """The directory that it is in."""
        return HadoopPath(self._jvm, self._file_system, self._path.getParent())

    def exists(self) -> bool:
        """Whether there is something."""
        return bool(self._ask(lambda: self._file_system.exists(self._path)))

    def is_dir(self) -> bool:
        """Whether there is a directory."""
        return self.exists() and bool(
            self._ask(lambda: self._file_system.getFileStatus(self._path).isDirectory())
        )

    def iterdir(self) -> Iterator["HadoopPath"]:
        """What is in the directory."""
        for status in self._ask(lambda: list(self._file_system.listStatus(self._path))):
            yield HadoopPath(self._jvm, self._file_system, status.getPath())

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Make the directory, and those above it; always as if both were asked for."""
        del parents, exist_ok
        self._ask(lambda: self._file_system.mkdirs(self._path))

    def create(self) -> bool:
        """Make an empty file; False if there was one already, which is how runs are kept apart."""
        return bool(self._ask(lambda: self._file_system.createNewFile(self._path)))

    def rename(self, target: "HadoopPath") -> None:
        """Move to where nothing is."""
        if not self._ask(lambda: self._file_system.rename(self._path, target._path)):
            raise OSError(None, f"could not be renamed to {target}", str(self))

    def unlink(self, missing_ok: bool = True) -> None:
        """Remove a file; that it is not there is no error."""
        del missing_ok
        self.remove_tree()

    def rmdir(self) -> None:
        """Remove an empty directory."""
        self._ask(lambda: self._file_system.delete(self._path, False))

    def remove_tree(self) -> None:
        """Remove it and all that is in it, if it is there."""
        self._ask(lambda: self._file_system.delete(self._path, True))

    def read_text(self) -> str:
        """What a small file holds."""

        def read() -> str:
            stream = self._file_system.open(self._path)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

        return self._ask(read)

    def write_text(self, text: str) -> None:
        """Write a small file."""

        def write() -> None:
            stream = self._file_system.create(self._path, True)
            try:
                stream.write(text.encode())
            finally:
                stream.close()

        self._ask(write)

    def _ask(self, operation: Callable[[], Answer]) -> Answer:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            return operation()
        except (Py4JError, PySparkException) as error:
            raise OSError(None, reason_of(error), str(self)) from error


def reason_of(error: Exception) -> str:
    """The first line of what Java said, without the names of its exceptions."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = next((line for line in lines if line.startswith(": ")), (lines or [""])[0])
    *_, reason = said.removeprefix(": ").rpartition("Exception: ")
    return reason or type(error).__name__


def _no_file_system(location: str, reason: str, hadoop: str) -> CliError:
    scheme = location.partition(":")[0]
    if "not found" not in reason and "No FileSystem" not in reason:
        return CliError(f"{location}: {reason}", "check the address, and spark.hadoop.* settings")
    jar = JARS.get(scheme, "GROUP:ARTIFACT:VERSION").format(hadoop=hadoop)
    return CliError(
        f"{location}: Spark has no file system for {scheme}://",
        f"name the jar that has it: --packages {jar}",
        ExitStatus.USAGE,
    )
