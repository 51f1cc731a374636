"""`spark.read.format("kctl")`: topics as DataFrames, for notebooks and Spark jobs.

    from kctl.spark.data_source import register

    register(spark)
    orders = (
        spark.read.format("kctl")
        .option("bootstrap.servers", "localhost:9092")   # or: .option("from.dir", "/var/lib/kafka")
        .option("topics", "orders,audit.*")
        .option("since", "-1d")
        .load()
    )
    tail = spark.readStream.format("kctl").options(**the_same).load()

Options: `topics` (comma-separated names or regular expressions), `bootstrap.servers` or `from.dir`
(comma-separated log directories), `command.config` (a client.properties file on the driver, for TLS
and SASL), `isolation`, `since`, `until`, `last`, `task.bytes`, `timeout`, and for streams
`starting.offsets` (earliest or latest). Offsets are pinned when the DataFrame is created. Records
are passed to Spark as Arrow batches. `kctl spark-export` is faster for exports of many gigabytes,
because its tasks write their files themselves.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.cli.options import DEFAULT_TIMEOUT_S, Session
from kctl.dump.reading.filters import parse_moment
from kctl.spark.decoding.columns import DEFAULT_COLUMNS, arrow_schema
from kctl.spark.planning.plan import DEFAULT_TASK_BYTES, OffsetRange, Piece
from kctl.spark.planning.selection import Selection, Source, choose_partitions, choose_ranges
from kctl.spark.planning.settings import IsolationLevel, TaskSettings
from kctl.spark.reading.cluster import ClusterSource
from kctl.spark.reading.log_directory import LogDirectorySource
from kctl.spark.reading.pieces import piece_tables
from kctl.spark.writing.selection import select_records

SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestamp_type STRING, "
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_MICROSECONDS = pa.timestamp("us", tz="UTC")
_TOPIC_IDS = "topic_ids"
"""The key of the topic ids in a stream position; the other keys are partitions."""
_MAX_TIME_MS = (2**63 - 1) // 1000


def register(spark: Any) -> None:
    """Register the format `kctl` in a session."""
    spark.dataSource.register(KctlDataSource)


@dataclass
class PieceToRead(InputPartition):
    """What one Spark task reads."""

    piece: Piece


class Request:
    """The parsed options of a DataFrame; CliError names a missing or invalid one."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {key.lower(): value for key, value in options.items()}
        self.topics = tuple(_names(given.get("topics", "")))
        if not self.topics:
            raise CliError("the option topics is missing")
        self._directories = [Path(name) for name in _names(given.get("from.dir", ""))]
        self._session = Session(
            given.get("bootstrap.servers"),
            command_config=given.get("command.config"),
            timeout=float(given.get("timeout", DEFAULT_TIMEOUT_S)),
        )
        self.task_bytes = int(given.get("task.bytes", DEFAULT_TASK_BYTES))
        self.is_from_latest = given.get("starting.offsets", "latest") == "latest"
        isolation = IsolationLevel(given.get("isolation", IsolationLevel.READ_COMMITTED))
        now_ms = round(time.time() * 1000)
        self.settings = TaskSettings(
            "",
            bootstrap_servers="" if self._directories else self._session.bootstrap_servers(),
            timeout_s=self._session.timeout,
            isolation=isolation,
            since_ms=_moment(given.get("since"), "since", now_ms),
            until_ms=_moment(given.get("until"), "until", now_ms),
            security=None if self._directories else self._session.security,
        )
        self.selection = Selection(
            self.topics,
            since_ms=_moment(given.get("since"), "since", now_ms),
            last=int(given["last"]) if "last" in given else None,
            is_committed=isolation is IsolationLevel.READ_COMMITTED,
        )

    @contextmanager
    def source(self) -> Iterator[Source]:
        """A new source for the block, which sees the current state of the logs."""
        try:
            if self._directories:
                yield LogDirectorySource(self._directories)
            else:
                yield ClusterSource(self._session)
        finally:
            self._session.close()

    def pieces(self, source: Source, ranges: Iterable[OffsetRange]) -> list[PieceToRead]:
        """The ranges in parts of about `task.bytes`."""
        return [
            PieceToRead(piece)
            for each in ranges
            if not each.is_empty
            for piece in source.pieces(each, self.task_bytes)
        ]


class KctlDataSource(DataSource):
    """The format `kctl`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kctl"

    def schema(self) -> str:
        """The columns, which do not depend on the options."""
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        """For `spark.read`."""
        return KctlReader(Request(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For `spark.readStream`."""
        return KctlStreamReader(Request(self.options))


class KctlReader(DataSourceReader):
    """Reads the selected records once."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def partitions(self) -> list[InputPartition]:
        """The pinned offsets, split into tasks."""
        with self._request.source() as source:
            ranges = choose_ranges(source, self._request.selection)
            return list(self._request.pieces(source, ranges))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task."""
        return read_batches(partition, self._request.settings)


class KctlStreamReader(DataSourceStreamReader):
    """Reads appended records batch by batch; a position holds the next offset of each partition."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The position at which a new query begins."""
        is_latest = self._request.is_from_latest
        with self._request.source() as source:
            ranges = self._there(source)
            offsets = {
                str(each.topic_partition): each.end_offset if is_latest else each.first_offset
                for each in ranges
            }
            return {**offsets, _TOPIC_IDS: self._topic_ids(source, ranges)}

    def latestOffset(self, *_: Any) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The end of each partition now."""
        with self._request.source() as source:
            ranges = self._there(source)
            offsets = {str(each.topic_partition): each.end_offset for each in ranges}
            return {**offsets, _TOPIC_IDS: self._topic_ids(source, ranges)}

    @staticmethod
    def _topic_ids(source: Source, ranges: list[OffsetRange]) -> dict[str, str]:
        """Topic ids by topic: offsets alone do not show that a topic was recreated."""
        names = {each.topic for each in ranges}
        topic_ids = source.origin([each.topic_partition for each in ranges]).topic_ids
        return {topic: topic_id for topic, topic_id in topic_ids.items() if topic in names}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The records between two positions; a new partition is read from its beginning.

        CliError if a topic was recreated in between, because then records would be lost.
        """
        before, after = start.get(_TOPIC_IDS, {}), end.get(_TOPIC_IDS, {})
        for topic in before.keys() & after.keys():
            if before[topic] != after[topic]:
                raise CliError(
                    f"topic {topic} was recreated: its topic id was {before[topic]} and is now "
                    f"{after[topic]}",
                    "start the query with a new checkpoint",
                )
        with self._request.source() as source:
            ranges = self._between(self._there(source), start, end)
            return list(self._request.pieces(source, ranges))

    @staticmethod
    def _between(
        there: list[OffsetRange], start: dict[str, Any], end: dict[str, Any]
    ) -> Iterator[OffsetRange]:
        """The ranges between two positions; CliError if a partition became shorter."""
        for each in there:
            name = str(each.topic_partition)
            first = start.get(name, each.first_offset)
            if first > end.get(name, first):
                raise CliError(
                    f"{name}: read up to offset {first}, but it ends at {end[name]}",
                    "if the topic was recreated, start the query with a new checkpoint",
                )
            yield OffsetRange(each.topic, each.partition, first, end.get(name, first))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task."""
        return read_batches(partition, self._request.settings)

    def _there(self, source: Source) -> list[OffsetRange]:
        partitions: list[TopicPartition] = choose_partitions(
            source.partitions(), self._request.topics
        )
        return source.whole_ranges(partitions, is_committed=self._request.selection.is_committed)


def read_batches(partition: InputPartition, settings: TaskSettings) -> Iterator[pa.RecordBatch]:
    """The records of a task as Arrow batches, with timestamps in microseconds as in Spark."""
    assert isinstance(partition, PieceToRead)  # noqa: S101 - Spark gives back what it was given
    schema = arrow_schema(DEFAULT_COLUMNS)
    schema = schema.set(schema.get_field_index("timestamp"), pa.field("timestamp", _MICROSECONDS))
    for table, _ in piece_tables(partition.piece, settings, DEFAULT_COLUMNS):
        yield from _cast(select_records(table, settings), schema).to_batches()


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with Spark's types; CliError names the record whose timestamp does not fit."""
    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        times = table.column("timestamp").cast(pa.int64()).to_pylist()
        for index, time_ms in enumerate(times):
            if time_ms is not None and abs(time_ms) > _MAX_TIME_MS:
                row = table.select(["topic", "partition", "offset"]).slice(index, 1).to_pylist()[0]
                raise CliError(
                    f"{row['topic']}-{row['partition']} offset {row['offset']}: timestamp "
                    f"{time_ms} does not fit Spark's TIMESTAMP",
                    "kctl spark-export keeps such records aside",
                ) from error
        raise


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _moment(text: str | None, option: str, now_ms: int) -> int | None:
    return None if text is None else parse_moment(text, option, now_ms)
