"""Files that Spark has written, looked at by Spark: sizes, checksums, rows, wherever they are."""

from typing import Any
from urllib.parse import unquote

from crc32c import crc32c

from kctl.spark.results import UNKNOWN, ExportedFile
from kctl.spark.writers import ExportFormat

READ_OPTIONS: dict[ExportFormat, dict[str, str]] = {
    # Lines may end inside of a value.
    ExportFormat.CSV: {"header": "true", "multiLine": "true", "escape": '"'},
}


def describe_files(spark: Any, directory: str) -> dict[str, ExportedFile]:
    """Every data file below a directory, by its path in it; records are not counted.

    A file is read by one task, which holds it in memory: they are as large as what a task wrote.
    """
    content = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(directory)
    found = content.rdd.map(lambda row: (row.path, row.length, f"{crc32c(row.content):08x}"))
    return {
        (path := relative(directory, name)): ExportedFile(path, UNKNOWN, size, checksum)
        for name, size, checksum in found.collect()
    }


def count_rows(spark: Any, directory: str, export_format: ExportFormat) -> dict[str, int]:
    """How many rows a reader of the files finds in each, by its path in the directory."""
    from pyspark.sql.functions import input_file_name

    rows = (
        spark.read.format(export_format.spark_name)
        .options(recursiveFileLookup="true", **READ_OPTIONS.get(export_format, {}))
        .load(directory)
    )
    counted = rows.select(input_file_name().alias("file")).groupBy("file").count()
    return {relative(directory, unquote(row.file)): row["count"] for row in counted.collect()}


def relative(directory: str, name: str) -> str:
    """The path of a file in a directory; Spark writes `file:/a` where others write `file:///a`."""
    inside = directory.partition(":")[2].lstrip("/")
    return name.partition(":")[2].lstrip("/").removeprefix(inside).lstrip("/")
