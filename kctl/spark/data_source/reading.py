"""Batch reads and streams of the format `kctl`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.spark.data_source.options import Request
from kctl.spark.data_source.pushdown import Limits
from kctl.spark.decoding.columns import DEFAULT_COLUMNS, arrow_schema
from kctl.spark.planning.plan import OffsetRange, Piece, pack
from kctl.spark.planning.selection import Source, choose_partitions, choose_ranges
from kctl.spark.planning.settings import OnGap, TaskSettings
from kctl.spark.reading.gaps import Gaps
from kctl.spark.reading.pieces import connected, piece_tables
from kctl.spark.writing.selection import select_records

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark before 4.2, which reads all that is there in one batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for Spark's class."""


_MICROSECONDS: Final = pa.timestamp("us", tz="UTC")
_TOPIC_IDS: Final = "topic_ids"
"""The key of the topic ids in a stream position; the other keys are partitions."""
_MAX_TIME_MS: Final = (2**63 - 1) // 1000
_SHARED_TASK_BYTES: Final = 32 * 1024 * 1024
"""How much a task reads that several partitions share."""
_SELECTED: Final = ("offset", "partition", "timestamp")
"""Columns that decide which records are read, whether or not they are wanted."""


@dataclass
class PiecesToRead(InputPartition):
    """What one Spark task reads."""

    pieces: tuple[Piece, ...]


def tasks_of(
    request: Request, source: Source, ranges: Iterable[OffsetRange]
) -> list[InputPartition]:
    """The ranges in tasks of at most about `task.bytes`, at least `minPartitions` if possible.

    Small partitions share a task: it costs Spark some 50 ms of CPU time, in which 50 MB are read.
    """
    wanted = [each for each in ranges if not each.is_empty]
    pieces = [p for each in wanted for p in source.pieces(each, request.task_bytes)]
    share = max(1, sum(piece.size_bytes for piece in pieces) // request.min_partitions)
    if len(pieces) < request.min_partitions:
        pieces = [p for each in wanted for p in source.pieces(each, share)]
    tasks = pack(pieces, min(request.task_bytes, share, _SHARED_TASK_BYTES))
    return [PiecesToRead(task.pieces) for task in tasks]


class KctlReader(DataSourceReader):
    """Reads the selected records once."""

    def __init__(self, request: Request, columns: Sequence[str] = DEFAULT_COLUMNS) -> None:
        self._request = request
        self._columns = tuple(columns)
        self._limits = Limits()

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Read less; Spark applies all filters to what is read."""
        self._limits.narrow(filters)
        return filters

    def partitions(self) -> list[InputPartition]:
        """The pinned offsets, split into tasks."""
        request, limits = self._request, self._limits
        selection = request.selection
        if limits.since_ms is not None:
            since = max(selection.since_ms or limits.since_ms, limits.since_ms)
            selection = replace(selection, since_ms=since)
        with request.source() as source:
            ranges = choose_ranges(source, selection)
            return tasks_of(request, source, (self._bounded(each) for each in ranges))

    def _bounded(self, there: OffsetRange) -> OffsetRange:
        """The offsets between startingOffsets and endingOffsets that the filters leave."""
        partition = there.topic_partition
        ends = there.first_offset, there.end_offset
        first = self._request.starting.of(partition, *ends)
        end = self._request.ending.of(partition, *ends)
        if not there.first_offset <= first <= end <= there.end_offset:
            if not self._request.is_gap_skipped:
                raise CliError(
                    f"{partition}: offsets {first} to {end} are out of range (available: "
                    f"{there.first_offset} to {there.end_offset}); failOnDataLoss=false reads what "
                    "is available"
                )
            first = min(max(first, there.first_offset), there.end_offset)
            end = max(first, min(end, there.end_offset))
        return self._limits.within(OffsetRange(*partition, first, end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task."""
        settings = self._request.settings
        if self._limits.until_ms is not None:
            until = min(settings.until_ms or self._limits.until_ms, self._limits.until_ms)
            settings = replace(settings, until_ms=until)
        return read_batches(partition, settings, self._columns)


class KctlStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads appended records batch by batch; a position holds the next offset of each partition.

    Field `_latest`: the position that `latestOffset` returned last, and what the logs held then.
    Spark plans the batch up to this position next, which takes no further questions about offsets.
    A log that has changed since is noticed when it is read.
    Field `_pinned`: what the logs held when a query with the trigger `availableNow` began.
    """

    def __init__(self, request: Request, columns: Sequence[str] = DEFAULT_COLUMNS) -> None:
        self._request = request
        self._columns = tuple(columns)
        self._latest: tuple[dict[str, Any], list[OffsetRange]] = ({}, [])
        self._pinned: tuple[list[OffsetRange], dict[str, str]] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The position at which a new query begins."""
        starting = self._request.starting
        with self._request.source() as source:
            ranges = self._there(source)
            offsets = {
                str(each.topic_partition): starting.of(
                    each.topic_partition, each.first_offset, each.end_offset
                )
                for each in ranges
            }
            return {**offsets, _TOPIC_IDS: self._topic_ids(source, ranges)}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """maxOffsetsPerTrigger; without it, everything available."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        limit = self._request.max_offsets
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Pin the ends: such a query reads what is there now, in batches, and then stops."""
        self._pinned = self._now()

    def _now(self) -> tuple[list[OffsetRange], dict[str, str]]:
        """What the logs hold, and the topic ids."""
        with self._request.source() as source:
            ranges = self._there(source)
            return ranges, self._topic_ids(source, ranges)

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """The end of each partition now, or as far as the limit allows; older Sparks give none."""
        ranges, topic_ids = self._pinned or self._now()
        ends = _ends(ranges)
        max_rows = getattr(limit, "max_rows", None)
        if start and max_rows:
            firsts = {str(each.topic_partition): each.first_offset for each in ranges}
            starts = {name: max(start.get(name, first), first) for name, first in firsts.items()}
            ends = limited(starts, ends, max_rows)
        position = {**ends, _TOPIC_IDS: topic_ids}
        self._latest = position, ranges
        return position

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The ends without a limit, which Spark shows in the progress of a query."""
        return _ends(self._latest[1]) or None

    @staticmethod
    def _topic_ids(source: Source, ranges: list[OffsetRange]) -> dict[str, str]:
        """Topic ids by topic: offsets alone do not show that a topic was recreated."""
        names = {each.topic for each in ranges}
        topic_ids = source.origin([each.topic_partition for each in ranges]).topic_ids
        return {topic: topic_id for topic, topic_id in topic_ids.items() if topic in names}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The records between two positions; a new partition is read from its beginning.

        CliError if a topic was recreated or records are gone, unless failOnDataLoss is false.
        """
        recreated = self._recreated(start, end)
        latest, there = self._latest
        with self._request.source() as source:
            if end == latest:
                source.pin(there, is_committed=self._request.selection.is_committed)
            else:  # the batch that was running when the query stopped
                there = self._there(source)
            return tasks_of(self._request, source, self._between(there, start, end, recreated))

    def _recreated(self, start: dict[str, Any], end: dict[str, Any]) -> set[str]:
        before, after = start.get(_TOPIC_IDS, {}), end.get(_TOPIC_IDS, {})
        found = {each for each in before.keys() & after.keys() if before[each] != after[each]}
        if found and not self._request.is_gap_skipped:
            topic = min(found)
            raise CliError(
                f"topic {topic} was recreated: its topic id was {before[topic]} and is now "
                f"{after[topic]}",
                "start the query with a new checkpoint, or set failOnDataLoss to false",
            )
        return found

    def _between(
        self,
        there: list[OffsetRange],
        start: dict[str, Any],
        end: dict[str, Any],
        recreated: set[str],
    ) -> Iterator[OffsetRange]:
        """The ranges between two positions; CliError if records between them are gone."""
        for each in there:
            name = str(each.topic_partition)
            first = start.get(name, each.first_offset)
            if each.topic in recreated:
                first = each.first_offset
            last = end.get(name, first)
            if problem := _loss(first, last, each):
                if not self._request.is_gap_skipped:
                    raise CliError(
                        f"{name}: {problem}",
                        "start the query with a new checkpoint, or set failOnDataLoss to false",
                    )
                first = min(max(first, each.first_offset), each.end_offset)
                if first > last:
                    first = each.first_offset  # a log that became shorter is a different log
            yield OffsetRange(each.topic, each.partition, min(first, last), last)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task."""
        return read_batches(partition, self._request.settings, self._columns)

    def _there(self, source: Source) -> list[OffsetRange]:
        partitions: list[TopicPartition] = choose_partitions(
            source.partitions(), self._request.topics
        )
        return source.whole_ranges(partitions, is_committed=self._request.selection.is_committed)


def _ends(ranges: Iterable[OffsetRange]) -> dict[str, int]:
    return {str(each.topic_partition): each.end_offset for each in ranges}


def _loss(first: int, end: int, there: OffsetRange) -> str:
    if first > end:
        return f"read up to offset {first}, but it ends at {end}"
    if first < min(there.first_offset, end):
        return f"offsets {first} to {there.first_offset - 1} were deleted before they were read"
    return ""


def limited(starts: Mapping[str, int], ends: Mapping[str, int], max_rows: int) -> dict[str, int]:
    """Ends so that at most about `max_rows` offsets are read, in proportion to what is available.

    As Spark's connector: a partition with anything to read gets at least one offset.
    """
    sizes = {name: max(0, ends[name] - starts[name]) for name in ends}
    total = sum(sizes.values())
    if total <= max_rows:
        return dict(ends)
    return {
        name: min(ends[name], starts[name] + max(1, sizes[name] * max_rows // total))
        if sizes[name]
        else ends[name]
        for name in ends
    }


def read_batches(
    partition: InputPartition, settings: TaskSettings, columns: Sequence[str] = DEFAULT_COLUMNS
) -> Iterator[pa.RecordBatch]:
    """The records of a task as Arrow batches, with timestamps in microseconds as in Spark."""
    assert isinstance(partition, PiecesToRead)  # noqa: S101 - Spark gives back what it was given
    fields = [
        pa.field(field.name, _MICROSECONDS) if field.name == "timestamp" else field
        for field in arrow_schema(columns)
    ]
    read = tuple(dict.fromkeys((*columns, *_SELECTED)))
    with connected(settings):
        for piece in partition.pieces:
            gaps = Gaps(is_skipped=settings.on_gap is OnGap.SKIP)
            for table, _ in piece_tables(piece, settings, read, gaps):
                rows = select_records(table, settings)
                yield from _cast(rows, pa.schema(fields), piece).to_batches()


def _cast(table: pa.Table, schema: pa.Schema, piece: Piece) -> pa.Table:
    """The wanted columns in Spark's types; CliError names a record whose timestamp does not fit."""
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowInvalid as error:
        times = table.column("timestamp").cast(pa.int64()).to_pylist()
        for index, time_ms in enumerate(times):
            if time_ms is not None and abs(time_ms) > _MAX_TIME_MS:
                offset = table.column("offset")[index].as_py()
                raise CliError(
                    f"{piece.topic}-{piece.partition} offset {offset}: timestamp "
                    f"{time_ms} does not fit Spark's TIMESTAMP",
                    "kctl spark-export writes such records to _undecodable",
                ) from error
        raise
