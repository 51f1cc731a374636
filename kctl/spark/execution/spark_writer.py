"""ExportDirectory whose files Spark writes: the tasks are a data source, and Spark saves its rows.

Slower than tasks that write their files themselves, because every record passes through Spark, but
it supports all file systems and formats of Spark.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.accumulators import AccumulatorParam
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from kctl.cli.errors import CliError, ExitStatus
from kctl.spark.decoding.columns import arrow_schema
from kctl.spark.engine.spark_files import count_rows, describe_files
from kctl.spark.planning.plan import ExportTask
from kctl.spark.planning.settings import Codec, Compression, ExportFormat, OnGap, TaskSettings
from kctl.spark.reading.gaps import Gaps
from kctl.spark.reading.pieces import piece_tables
from kctl.spark.writing.content import (
    UNDECODABLE,
    columns_to_read,
    rows_of,
    written_columns,
)
from kctl.spark.writing.formats import csv_table
from kctl.spark.writing.output import count_rows as count_written
from kctl.spark.writing.output import time_texts
from kctl.spark.writing.results import ExportedFile, PartitionCount, TaskResult

_FORMAT = "kctl-export"
_WRITE_OPTIONS = {
    ExportFormat.CSV: {"header": "true", "escape": '"'},
    ExportFormat.JSONL: {"ignoreNullFields": "false"},
}
_SPARK_CODECS = {Codec.NONE: "uncompressed"}
"""Names of codecs that are different in Spark."""
_NO_MARKER = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
_MICROSECONDS = pa.timestamp("us", tz="UTC")


class Gathered(AccumulatorParam[dict[int, TaskResult]]):
    """Results by task; all attempts at a task have the same result."""

    def zero(self, value: dict[int, TaskResult]) -> dict[int, TaskResult]:
        """No results."""
        return {}

    def addInPlace(  # noqa: N802 - Spark's name
        self, value1: dict[int, TaskResult], value2: dict[int, TaskResult]
    ) -> dict[int, TaskResult]:
        """The union."""
        return value1 | value2


@dataclass
class TaskToRun(InputPartition):
    """What one Spark task reads."""

    task: ExportTask


class TaskReader(DataSourceReader):
    """The rows of tasks to write, or (`is_aside`) those that could not be decoded."""

    def __init__(
        self, tasks: Sequence[ExportTask], settings: TaskSettings, gathered: Any, is_aside: bool
    ) -> None:
        self._tasks = tasks
        self._settings = settings
        self._gathered = gathered
        self._is_aside = is_aside

    def partitions(self) -> list[InputPartition]:
        """A partition per task."""
        return [TaskToRun(task) for task in self._tasks]

    def schema(self) -> Any:
        """The columns of the rows."""
        nothing = arrow_schema(columns_to_read(self._settings)).empty_table()
        good, bad = rows_of(nothing, self._settings)
        rows = bad if self._is_aside else good
        return from_arrow_schema(output_table(rows, self._settings, self._is_aside).schema)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task; its result is added after the last row."""
        assert isinstance(partition, TaskToRun)  # noqa: S101 - Spark gives back what it was given
        task = partition.task
        columns = columns_to_read(self._settings)
        counts = []
        for piece in task.pieces:
            gaps = Gaps(is_skipped=self._settings.on_gap is OnGap.SKIP)
            for table, size_bytes in piece_tables(piece, self._settings, columns, gaps):
                good, bad = rows_of(table, self._settings)
                count = count_written(piece, good, bad, written_columns(good, self._settings))
                counts.append(replace(count, size_bytes=size_bytes))
                rows = bad if self._is_aside else good
                yield from output_table(rows, self._settings, self._is_aside).to_batches()
            counts.append(PartitionCount(piece.topic, piece.partition, gaps=tuple(gaps.found)))
        self._gathered.add({task.index: TaskResult(task.index, tuple(counts), ())})


def output_table(table: pa.Table, settings: TaskSettings, is_aside: bool = False) -> pa.Table:
    """Rows for Spark: times in microseconds, a column per directory level."""
    levels = () if is_aside else settings.partition_by
    for level in levels:
        if level not in table.column_names:
            table = table.append_column(level, time_texts(table, level))
    if is_aside:
        rows = table
    else:
        rows = written_columns(table, settings)
        for level in levels:
            if level not in rows.column_names:
                rows = rows.append_column(level, table.column(level))
    if settings.export_format is ExportFormat.CSV and not is_aside:
        return csv_table(rows)
    fields = [
        pa.field(field.name, _MICROSECONDS) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


class SparkWriter:
    """One export that Spark writes to `out`."""

    def __init__(
        self, spark: Any, out: str, tasks: Sequence[ExportTask], settings: TaskSettings
    ) -> None:
        self._spark = spark
        self._out = out
        self._tasks = tasks
        self._settings = settings
        self._gathered = spark.sparkContext.accumulator({}, Gathered())
        check_format(spark, settings.export_format)

    def results(self) -> Mapping[int, TaskResult]:
        """The results of finished tasks by index, without their files."""
        found: Mapping[int, TaskResult] = self._gathered.value
        return found

    def save(self) -> None:
        """Write all rows; tasks with undecodable records are read a second time for these."""
        self._save(self._out, self._tasks, self._settings, is_aside=False)
        if affected := self._affected():
            plain = replace(
                self._settings, export_format=ExportFormat.PARQUET, partition_by=(), compression=""
            )
            self._save(f"{self._out}/{UNDECODABLE}", affected, plain, is_aside=True)

    def _affected(self) -> list[ExportTask]:
        results = self.results()
        return [
            task for task in self._tasks if any(c.undecodable for c in results[task.index].counts)
        ]

    def _save(
        self, out: str, tasks: Sequence[ExportTask], settings: TaskSettings, is_aside: bool
    ) -> None:
        reader = TaskReader(tasks, self._settings, self._gathered, is_aside)
        self._spark.dataSource.register(_data_source(reader, reader.schema()))
        writer = self._spark.read.format(_FORMAT).load().write.mode("overwrite")
        writer = writer.format(settings.export_format.spark_name)
        compression = Compression.parse(settings.compression, settings.export_format)
        options = {
            **_WRITE_OPTIONS.get(settings.export_format, {}),
            "compression": _SPARK_CODECS.get(compression.codec, compression.codec.value),
        }
        writer.options(**_NO_MARKER, **options).partitionBy(*settings.partition_by).save(out)

    def finished(self) -> list[TaskResult]:
        """The results of all tasks with their files, whose records are counted again."""
        found = self._files(self._out, self._tasks, self._settings.export_format)
        if affected := self._affected():
            aside = self._files(f"{self._out}/{UNDECODABLE}", affected, ExportFormat.PARQUET)
            for index, files in aside.items():
                found[index] += [replace(file, path=f"{UNDECODABLE}{file.path}") for file in files]
        results = [
            replace(result, files=tuple(found[index])) for index, result in self.results().items()
        ]
        written = sum(file.records for result in results for file in result.files)
        read = sum(c.records + c.undecodable for result in results for c in result.counts)
        if written != read:
            raise CliError(f"{read} records were read, but Spark has written {written}")
        return results

    def _files(
        self, directory: str, tasks: Sequence[ExportTask], export_format: ExportFormat
    ) -> dict[int, list[ExportedFile]]:
        """The files in a directory by task: Spark's file names contain the task number."""
        found: dict[int, list[ExportedFile]] = {task.index: [] for task in self._tasks}
        described = describe_files(self._spark, directory)
        rows = count_rows(self._spark, directory, export_format) if described else {}
        for path, file in sorted(described.items()):
            number = int(path.rpartition("/")[2].split("-")[1])
            found[tasks[number].index].append(replace(file, records=rows.get(path, 0)))
        return found


def check_format(spark: Any, export_format: ExportFormat) -> None:
    """CliError if Spark cannot write the format: Avro is a separate module."""
    if export_format is not ExportFormat.AVRO:
        return
    try:
        spark.sparkContext._jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(
            "avro", spark._jsparkSession.sessionState().conf()
        )
    except Exception as error:
        version = spark.version
        raise CliError(
            "Spark's Avro module is not available",
            f"add it with --packages org.apache.spark:spark-avro_2.13:{version} or --jars FILE",
            ExitStatus.USAGE,
        ) from error


def _data_source(reader: TaskReader, schema: Any) -> type[DataSource]:
    class ExportSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return _FORMAT

        def schema(self) -> Any:
            return schema

        def reader(self, schema: Any) -> DataSourceReader:
            return reader

    return ExportSource
