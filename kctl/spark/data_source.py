"""`spark.read.format("kctl")`: topics as DataFrames, for notebooks and jobs of one's own.

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

Options: `topics` (names or patterns, with commas), `bootstrap.servers` or `from.dir` (directories,
with commas), `command.config` (a client.properties file on the driver, for TLS and SASL),
`isolation`, `since`, `until`, `last`, `task.bytes`, `timeout`, and for streams `starting.offsets`
(earliest or latest). Offsets are pinned when the DataFrame is made; records go to Spark as Arrow
batches. An export of many gigabytes is quicker with `kctl spark-export`, whose
tasks write their files themselves.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
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
from kctl.dump.filters import parse_times
from kctl.errors import CliError
from kctl.options import DEFAULT_TIMEOUT_S, Session
from kctl.spark.columns import DEFAULT_COLUMNS, arrow_schema
from kctl.spark.log_source import LogSource
from kctl.spark.plan import DEFAULT_TASK_BYTES, OffsetRange, Piece
from kctl.spark.selection import Selection, Source, choose_partitions, choose_ranges
from kctl.spark.settings import IsolationLevel, TaskSettings
from kctl.spark.task import piece_tables
from kctl.spark.wire_source import WireSource

SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestamp_type STRING, "
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_MICROSECONDS = pa.timestamp("us", tz="UTC")


def register(spark: Any) -> None:
    """Make the format `kctl` known to a session."""
    spark.dataSource.register(KctlDataSource)


@dataclass
class PieceToRead(InputPartition):
    """What one Spark task reads."""

    piece: Piece


class Request:
    """The options of a DataFrame, understood; CliError names one that is missing or wrong."""

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
        self.settings = TaskSettings(
            "",
            bootstrap_servers="" if self._directories else self._session.bootstrap_servers(),
            timeout_s=self._session.timeout,
            isolation=isolation,
            security=None if self._directories else self._session.security,
        )
        now_ms = round(time.time() * 1000)
        self.selection = Selection(
            self.topics,
            since_ms=_moment(given.get("since"), now_ms),
            until_ms=_moment(given.get("until"), now_ms),
            last=int(given["last"]) if "last" in given else None,
            is_committed=isolation is IsolationLevel.READ_COMMITTED,
        )

    def source(self) -> Source:
        """The source as it is now."""
        return LogSource(self._directories) if self._directories else WireSource(self._session)

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
        """What `format` takes."""
        return "kctl"

    def schema(self) -> str:
        """The columns, always the same."""
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        """For `spark.read`."""
        return KctlReader(Request(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For `spark.readStream`."""
        return KctlStreamReader(Request(self.options))


class KctlReader(DataSourceReader):
    """Everything that was asked for, once."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def partitions(self) -> list[InputPartition]:
        """The pinned offsets, cut into tasks."""
        source = self._request.source()
        return list(self._request.pieces(source, choose_ranges(source, self._request.selection)))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task."""
        return read_batches(partition, self._request.settings)


class KctlStreamReader(DataSourceStreamReader):
    """What is appended, batch by batch; a position is the next offset of each partition."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Where a new query begins."""
        ranges = self._there(self._request.source())
        return {
            str(each.topic_partition): (
                each.end_offset if self._request.is_from_latest else each.first_offset
            )
            for each in ranges
        }

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """How far one could read now."""
        ranges = self._there(self._request.source())
        return {str(each.topic_partition): each.end_offset for each in ranges}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """What lies between two positions; a partition that is new is read from its beginning."""
        source = self._request.source()
        ranges = []
        for each in self._there(source):
            name = str(each.topic_partition)
            first = start.get(name, each.first_offset)
            ranges.append(OffsetRange(each.topic, each.partition, first, end.get(name, first)))
        return list(self._request.pieces(source, ranges))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task."""
        return read_batches(partition, self._request.settings)

    def _there(self, source: Source) -> list[OffsetRange]:
        partitions: list[TopicPartition] = choose_partitions(
            source.partitions(), self._request.topics
        )
        return source.whole_ranges(partitions, is_committed=self._request.selection.is_committed)


def read_batches(partition: InputPartition, settings: TaskSettings) -> Iterator[pa.RecordBatch]:
    """A task's records as Arrow, with times as Spark keeps them."""
    assert isinstance(partition, PieceToRead)  # noqa: S101 - Spark gives back what it was given
    schema = arrow_schema(DEFAULT_COLUMNS)
    schema = schema.set(schema.get_field_index("timestamp"), pa.field("timestamp", _MICROSECONDS))
    for table, _ in piece_tables(partition.piece, settings, DEFAULT_COLUMNS):
        yield from table.cast(schema).to_batches()


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _moment(text: str | None, now_ms: int) -> int | None:
    return None if text is None else parse_times(text, now_ms).first
