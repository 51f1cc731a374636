"""Sizes, checksums and row counts of files on any file system, computed by Spark."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import unquote

from kctl.spark.engine.hadoop import HadoopPath
from kctl.spark.planning.settings import ExportFormat
from kctl.spark.writing.results import UNKNOWN, ExportedFile

_CHECKSUM_THREADS: Final = 8
READ_OPTIONS: dict[ExportFormat, dict[str, str]] = {
    # Values may contain line breaks.
    ExportFormat.CSV: {"header": "true", "multiLine": "true", "escape": '"'},
}


def describe_files(spark: Any, directory: str) -> dict[str, ExportedFile]:
    """All data files in a directory tree, by relative path; records are not counted.

    The checksums are computed in the driver's JVM, in some threads, by streaming: a file read into
    memory (77 MB with the default task size) exceeded Spark's default heap of 1 GB.
    """
    root = HadoopPath.open(spark, directory)
    files = [path for path in root.walk() if not is_hidden(str(path), str(root))]
    with ThreadPoolExecutor(_CHECKSUM_THREADS) as pool:
        described = pool.map(lambda path: (str(path), *path.size_and_crc32c()), files)
        return {
            (path := relative(directory, name)): ExportedFile(path, UNKNOWN, size, checksum)
            for name, size, checksum in described
        }


def is_hidden(name: str, root: str) -> bool:
    """Whether readers ignore a file: a part of its path below `root` begins with `_` or `.`."""
    parts = name.removeprefix(root).strip("/").split("/")
    return any(part.startswith(("_", ".")) for part in parts)


def count_rows(spark: Any, directory: str, export_format: ExportFormat) -> dict[str, int]:
    """The number of rows in each file, by relative path."""
    from pyspark.sql.functions import input_file_name

    rows = (
        spark.read.format(export_format.spark_name)
        .options(recursiveFileLookup="true", **READ_OPTIONS.get(export_format, {}))
        .load(directory)
    )
    counted = rows.select(input_file_name().alias("file")).groupBy("file").count()
    return {relative(directory, unquote(row.file)): row["count"] for row in counted.collect()}


def relative(directory: str, name: str) -> str:
    """The path of a file relative to a directory; Spark writes `file:/a` instead of `file:///a`."""
    inside = directory.partition(":")[2].lstrip("/")
    return name.partition(":")[2].lstrip("/").removeprefix(inside).lstrip("/")
