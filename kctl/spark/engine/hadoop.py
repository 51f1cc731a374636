"""Paths on file systems that Spark can write to: hdfs://, s3a://, viewfs://, …

Implemented with Hadoop's FileSystem in the driver's JVM; used for names and small text files, not
for data. The methods have the names of pathlib's, so that callers work with both.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from kctl.cli.errors import CliError, ExitStatus

Answer = TypeVar("Answer")

JARS = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
}
"""Maven artifacts of file systems that are not part of Spark, by scheme."""


class HadoopPath:
    """A path; operations raise OSError, as in pathlib."""

    def __init__(self, jvm: Any, file_system: Any, path: Any) -> None:
        self._jvm = jvm
        self._file_system = file_system
        self._path = path

    @classmethod
    def open(cls, spark: Any, location: str) -> "HadoopPath":
        """The path of a URL; CliError if Spark has no file system for it."""
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
        """The last component."""
        return str(self._path.getName())

    @property
    def parent(self) -> "HadoopPath":
        """The parent directory."""
        return HadoopPath(self._jvm, self._file_system, self._path.getParent())

    def exists(self) -> bool:
        """Whether the path exists."""
        return bool(self._ask(lambda: self._file_system.exists(self._path)))

    def is_dir(self) -> bool:
        """Whether the path is a directory."""
        return self.exists() and bool(
            self._ask(lambda: self._file_system.getFileStatus(self._path).isDirectory())
        )

    def iterdir(self) -> Iterator["HadoopPath"]:
        """The entries of the directory."""
        for status in self._ask(lambda: list(self._file_system.listStatus(self._path))):
            yield HadoopPath(self._jvm, self._file_system, status.getPath())

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Create the directory and its parents; both flags are always in effect."""
        del parents, exist_ok
        self._ask(lambda: self._file_system.mkdirs(self._path))

    def create(self) -> bool:
        """Create an empty file atomically; False if it exists. Used as a lock."""
        return bool(self._ask(lambda: self._file_system.createNewFile(self._path)))

    def rename(self, target: "HadoopPath") -> None:
        """Rename to a path that does not exist."""
        if not self._ask(lambda: self._file_system.rename(self._path, target._path)):
            raise OSError(None, f"could not be renamed to {target}", str(self))

    def unlink(self, missing_ok: bool = True) -> None:
        """Delete a file if it exists."""
        del missing_ok
        self.remove_tree()

    def rmdir(self) -> None:
        """Delete an empty directory."""
        self._ask(lambda: self._file_system.delete(self._path, False))

    def remove_tree(self) -> None:
        """Delete the path recursively if it exists."""
        self._ask(lambda: self._file_system.delete(self._path, True))

    def walk(self) -> Iterator["HadoopPath"]:
        """All files below the directory."""
        found = self._ask(lambda: self._file_system.listFiles(self._path, True))
        while self._ask(found.hasNext):
            status = self._ask(found.next)
            yield HadoopPath(self._jvm, self._file_system, status.getPath())

    def size_and_crc32c(self) -> tuple[int, str]:
        """The size of the file and its CRC-32C in hexadecimal, computed by streaming in Java."""

        def read() -> tuple[int, str]:
            java = self._jvm.java
            checksum = java.util.zip.CRC32C()
            stream = java.util.zip.CheckedInputStream(self._file_system.open(self._path), checksum)
            try:
                size = stream.transferTo(java.io.OutputStream.nullOutputStream())
            finally:
                stream.close()
            return int(size), f"{checksum.getValue():08x}"

        return self._ask(read)

    def read_text(self) -> str:
        """Read a small file."""

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
    """The first line of a Java error message, without exception names."""
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
        f"add its jar with --packages {jar}",
        ExitStatus.USAGE,
    )
