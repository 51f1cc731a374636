"""Rows of published files, read back with the checksums that their manifest should have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from broker.model import TopicPartition
from kctl.spark.decoding.columns import arrow_schema
from kctl.spark.planning.settings import ExportFormat, PartitionColumn, TaskSettings
from kctl.spark.publishing.object_store import ObjectPath
from kctl.spark.writing.checksums import Streams, column_checksums, table_streams
from kctl.spark.writing.content import columns_to_read, rows_of, written_columns

UNREADABLE: Final = (OSError, pa.ArrowException, KeyError, ValueError)
_WINDOW_ROWS: Final = 500_000
"""Offsets that are read at once: rows of a partition may be spread over files in any order."""


def stored_checksums(
    export: object, partition: TopicPartition, settings: TaskSettings
) -> dict[str, str] | None:
    """The checksums of a partition's rows in the files of an export; None as `stored_streams`."""
    streams = stored_streams(export, partition, settings)
    return None if streams is None else column_checksums(streams)


def stored_streams(
    export: object, partition: TopicPartition, settings: TaskSettings
) -> Streams | None:
    """The streams of a partition's rows in the files of an export.

    None if they cannot be compared: text files, files elsewhere, or exports without columns for
    partition and offset.
    """
    known = {*settings.columns, *settings.partition_by}
    if (
        not isinstance(export, Path)
        or settings.export_format not in (ExportFormat.PARQUET, ExportFormat.ORC)
        or not {"topic", "partition"} <= known
        or "offset" not in settings.columns
    ):
        return None
    schema = written_schema(settings)
    streams = table_streams(schema.empty_table())
    for table in _windows(stored_rows(export, settings), partition):
        rows = table.sort_by("offset").select(schema.names).cast(schema)
        streams = table_streams(rows, streams)
    return streams


def written_schema(settings: TaskSettings) -> pa.Schema:
    """The columns of exported rows, with those that are directory levels."""
    nothing = arrow_schema(columns_to_read(settings)).empty_table()
    return written_columns(rows_of(nothing, settings)[0], settings).schema


def stored_rows(export: Path | ObjectPath, settings: TaskSettings) -> Any:
    """The rows of an export, without its manifest and the records set aside."""
    schema = written_schema(settings)
    levels = [
        (level.value, schema.field(level.value).type)
        if level.value in schema.names
        else (level.value, _LEVEL_TYPES[level])
        for level in settings.partition_by
    ]
    return open_dataset(
        export,
        format=settings.export_format.value,
        partitioning=ds.partitioning(pa.schema(levels), flavor="hive") if levels else None,
    )


def open_dataset(place: Path | ObjectPath, **options: Any) -> Any:
    """The files below a directory, here or in an object store."""
    if isinstance(place, ObjectPath):
        return ds.dataset(place.path, filesystem=place.file_system, **options)
    return ds.dataset(place, **options)


_LEVEL_TYPES: Final = {
    PartitionColumn.TOPIC: pa.string(),
    PartitionColumn.PARTITION: pa.int32(),
    PartitionColumn.DATE: pa.string(),
    PartitionColumn.HOUR: pa.string(),
}


def _windows(rows: Any, partition: TopicPartition) -> Iterator[pa.Table]:
    """The rows of a partition in windows of offsets, ascending; within a window in any order."""
    of_partition = (pc.field("topic") == partition.topic) & (
        pc.field("partition") == partition.partition
    )
    bounds = _bounds(rows, of_partition)
    if bounds is None:
        return
    first, last = bounds
    for start in range(first, last + 1, _WINDOW_ROWS):
        inside = (pc.field("offset") >= start) & (pc.field("offset") < start + _WINDOW_ROWS)
        yield rows.to_table(filter=of_partition & inside)


def _bounds(rows: Any, condition: pc.Expression) -> tuple[int, int] | None:
    offsets = rows.to_table(columns=["offset"], filter=condition).column("offset")
    if not len(offsets):
        return None
    found = pc.min_max(offsets).as_py()
    return found["min"], found["max"]
