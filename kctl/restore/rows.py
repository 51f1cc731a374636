"""Records of exports in offset order, as Arrow tables of bounded size."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kctl.restore.exports import Part, SourceTopic
from kctl.spark.manifest_checks import range_of
from kctl.spark.reading_back import open_dataset, stored_rows
from kctl.spark.writing.content import UNDECODABLE

COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
_WINDOW_BYTES: Final = 16 * 1024 * 1024
_MAX_WINDOW: Final = 20_000
_TYPES: Final = {"timestamp": pa.int64(), "key": pa.binary(), "value": pa.binary()}


def partition_rows(topic: SourceTopic, partition: int, from_offset: int) -> Iterator[pa.Table]:
    """The records of a partition with at least this offset, with the columns `COLUMNS`."""
    for part in topic.parts[partition]:
        if range_of(part.entry).end_offset > from_offset and part.records:
            yield from _part_rows(part, from_offset)


def _part_rows(part: Part, from_offset: int) -> Iterator[pa.Table]:
    first, last = part.entry["first_offset"], part.entry["last_offset"]
    if first is None:
        return
    span = _window(part, last - first + 1)
    datasets = [stored_rows(part.path, part.settings)]
    if part.entry["undecodable"]:
        datasets.append(open_dataset(part.path / UNDECODABLE.rstrip("/"), format="parquet"))
    for start in range(max(first, from_offset), last + 1, span):
        tables = [_read(each, part, start, start + span) for each in datasets]
        found = pa.concat_tables(tables)
        if len(found):
            yield found.sort_by("offset")


def _window(part: Part, offsets: int) -> int:
    """Offsets to read at once."""
    mean = max(1, part.entry["size_bytes"] // offsets)
    return int(max(1, min(_MAX_WINDOW, _WINDOW_BYTES // mean)))


def _read(rows: Any, part: Part, first: int, end: int) -> pa.Table:
    chosen = (
        (pc.field("topic") == part.entry["topic"])
        & (pc.field("partition") == part.entry["partition"])
        & (pc.field("offset") >= first)
        & (pc.field("offset") < end)
    )
    table = rows.to_table(columns=list(COLUMNS), filter=chosen)
    for name, kind in _TYPES.items():
        at = table.column_names.index(name)
        column = table.column(name)
        if name == "timestamp":  # ORC has nanoseconds
            column = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False)
        table = table.set_column(at, name, column.cast(kind))
    return table
