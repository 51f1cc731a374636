"""`spark.read.format("kctl")` and `readStream`, with a real Spark."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
)

from kctl.cli.errors import CliError
from kctl.spark.data_source import KctlReader, KctlStreamReader, Request, limited, register
from tests.spark.support import LOGS, kafka_printed, sizes, write_log
from tests.support.broker import running_broker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]


@pytest.fixture
def source(spark: Any) -> Any:
    register(spark)
    return spark


def test_data_frame_has_the_records_of_a_log_directory(source: Any) -> None:
    frame = (
        source.read.format("kctl")
        .option("from.dir", str(LOGS))
        .option("topics", "rolled")
        .option("task.bytes", "20000")
        .load()
    )
    rows = [row.asDict() for row in frame.orderBy("offset").collect()]
    assert sizes(rows) == kafka_printed("magic2", "rolled-0")
    assert rows[0]["timestamp"] is not None


def test_data_frame_has_the_committed_records_of_a_cluster(source: Any, tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(10)
        producer = Producer({"bootstrap.servers": servers})
        for number in range(20):
            producer.produce("t", str(number), partition=number % 2)
        assert producer.flush(20) == 0
        options = {"bootstrap.servers": servers, "topics": "t"}
        frame = source.read.format("kctl").options(**options).load()
        assert sorted(int(row.value) for row in frame.collect()) == list(range(20))


def test_missing_option_is_named(source: Any) -> None:
    with pytest.raises(Exception, match="the option topics is missing"):
        source.read.format("kctl").option("from.dir", str(LOGS)).load().count()


def test_regression_stream_refuses_a_recreated_topic(tmp_path: Path) -> None:
    log = tmp_path / "t-0"
    write_log(log, [[(at, 0, None, b"v", ())] for at in range(10)])
    options = {"from.dir": str(tmp_path), "topics": "t", "starting.offsets": "earliest"}
    reader = KctlStreamReader(Request(options, is_stream=True))
    (log / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    before = reader.latestOffset()
    (log / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    write_log(log, [[(at, 0, None, b"v", ())] for at in range(15)])
    with pytest.raises(CliError, match="topic t was recreated"):
        reader.partitions(before, reader.latestOffset())


def test_regression_stream_refuses_a_log_that_became_shorter(tmp_path: Path) -> None:
    write_log(tmp_path / "t-0", [[(at, 0, None, b"v", ())] for at in range(10)])
    reader = KctlStreamReader(Request({"from.dir": str(tmp_path), "topics": "t"}, is_stream=True))
    before = reader.latestOffset()
    write_log(tmp_path / "t-0", [[(at, 0, None, b"v", ())] for at in range(3)])
    with pytest.raises(CliError, match="read up to offset 10, but it ends at 3"):
        reader.partitions(before, reader.latestOffset())


def test_stream_continues_at_its_checkpoint(source: Any, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "t-0"
    first, second = [[(at, at, None, b"v", ())] for at in (0, 1)]
    write_log(log, [first])

    def run_once() -> list[int]:
        stream = (
            source.readStream.format("kctl")
            .option("from.dir", str(tmp_path / "logs"))
            .option("topics", "t")
            .option("starting.offsets", "earliest")
            .load()
        )
        query = (
            stream.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        rows = source.read.parquet(str(tmp_path / "out")).collect()
        return sorted(row["offset"] for row in rows)

    assert run_once() == [0]
    write_log(log, [first, second])
    assert run_once() == [0, 1]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two partitions of 20 records, one second apart."""
    for partition in (0, 1):
        batches = [[(at, at * 1000, None, b"v%d" % at, ())] for at in range(20)]
        write_log(tmp_path / f"t-{partition}", batches)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lastt": "5"}, "unknown option lastt: did you mean last"),
        ({"frobnicate": "5"}, "unknown option frobnicate: options: topics"),
        ({"startingOffsets": "earlist"}, "startingOffsets: 'earlist' is not earliest, latest"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss: 'no' is not true or false"),
        ({"task.bytes": "-1"}, "task.bytes: '-1' is not a positive number"),
        ({"isolation": "dirty"}, "isolation: 'dirty' is not read_committed"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger has no meaning for batch reads"),
        ({"subscribe": "u"}, "subscribe is given twice"),
    ],
)
def test_regression_unknown_options_and_values_are_refused(
    logs: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(CliError, match=said):
        Request({"from.dir": str(logs), "topics": "t", **options})


def planned(reader: KctlReader) -> list[tuple[int, int, int]]:
    return [
        (piece.partition, piece.first_offset, piece.end_offset)
        for task in reader.partitions()
        for piece in task.pieces  # type: ignore[attr-defined]
    ]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([EqualTo(("partition",), 1)], [(1, 0, 20)]),
        ([EqualTo(("topic",), "u")], []),
        ([In(("topic",), ("t", "u")), LessThan(("offset",), 5)], [(0, 0, 5), (1, 0, 5)]),
        ([GreaterThan(("offset",), 17), LessThan(("partition",), 1)], [(0, 18, 20)]),
        ([GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(15, UTC))], None),
        ([EqualTo(("value",), b"x")], [(0, 0, 20), (1, 0, 20)]),
    ],
)
def test_filters_limit_what_is_read(
    logs: Path, filters: list[Filter], left: list[tuple[int, int, int]] | None
) -> None:
    reader = KctlReader(Request({"from.dir": str(logs), "topics": "t"}))
    assert list(reader.pushFilters(filters)) == filters
    assert planned(reader) == ([(0, 15, 20), (1, 15, 20)] if left is None else left)


def test_filter_on_the_end_of_a_time_span_limits_what_is_passed_to_spark(logs: Path) -> None:
    reader = KctlReader(Request({"from.dir": str(logs), "topics": "t"}), ["offset"])
    reader.pushFilters([LessThan(("timestamp",), datetime.fromtimestamp(3, UTC))])
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch[0]]
    assert sorted(row.as_py() for row in rows) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_starting_and_ending_offsets_are_those_of_sparks_connector(logs: Path) -> None:
    options = {"from.dir": str(logs), "subscribe": "t"}
    starting = json.dumps({"t": {"0": 7, "1": -2}})
    ending = json.dumps({"t": {"0": 9, "1": -1}})
    given = {**options, "startingOffsets": starting, "endingOffsets": ending}
    assert planned(KctlReader(Request(given))) == [(0, 7, 9), (1, 0, 20)]
    beyond = {**options, "startingOffsets": json.dumps({"t": {"0": 50}})}
    with pytest.raises(CliError, match=r"t-0: offsets 50 to 20 are out of range.*failOnDataLoss"):
        KctlReader(Request(beyond)).partitions()
    lenient = KctlReader(Request({**beyond, "failOnDataLoss": "false"}))
    assert planned(lenient) == [(1, 0, 20)]


def test_min_partitions_splits_a_small_topic(logs: Path) -> None:
    options = {"from.dir": str(logs), "topics": "t", "minPartitions": "2"}
    assert len(KctlReader(Request(options)).partitions()) == 2


def test_small_partitions_share_a_task(logs: Path) -> None:
    options = {"from.dir": str(logs), "topics": "t"}
    (task,) = KctlReader(Request(options), ["partition", "offset"]).partitions()
    reader = KctlReader(Request(options), ["partition", "offset"])
    rows = [row for batch in reader.read(task) for row in batch.to_pylist()]
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (partition, offset) for partition in (0, 1) for offset in range(20)
    ]
    apart = KctlReader(Request({**options, "task.bytes": "1500"})).partitions()
    assert len(apart) == 2


def test_offsets_per_trigger_are_limited_in_proportion() -> None:
    starts, ends = {"a": 0, "b": 50, "c": 7}, {"a": 100, "b": 350, "c": 7}
    assert limited(starts, ends, 40) == {"a": 10, "b": 80, "c": 7}
    assert limited(starts, ends, 1000) == ends
    assert limited({"a": 0, "b": 0}, {"a": 1, "b": 999}, 10) == {"a": 1, "b": 9}


def test_stream_reads_what_is_left_after_data_loss_if_that_is_allowed(tmp_path: Path) -> None:
    log = tmp_path / "t-0"
    write_log(log, [[(at, 0, None, b"v", ())] for at in range(10)])
    options = {"from.dir": str(tmp_path), "topics": "t", "startingOffsets": "earliest"}
    strict = KctlStreamReader(Request(options, is_stream=True))
    lenient = KctlStreamReader(Request({**options, "failOnDataLoss": "false"}, is_stream=True))
    start = strict.initialOffset()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    end = strict.latestOffset()
    with pytest.raises(CliError, match="offsets 0 to 3 were deleted before they were read"):
        strict.partitions(start, end)
    (part,) = lenient.partitions(start, end)
    (piece,) = part.pieces  # type: ignore[attr-defined]
    assert (piece.first_offset, piece.end_offset) == (4, 10)


def test_spark_pushes_filters_and_columns(source: Any, logs: Path, tmp_path: Path) -> None:
    frame = (
        source.read.format("kctl")
        .option("from.dir", str(logs))
        .option("topics", "t")
        .schema("offset BIGINT, partition INT, leader_epoch INT")
        .load()
    )
    found = frame.where("partition = 1 AND offset >= 18").collect()
    assert sorted((row.partition, row.offset) for row in found) == [(1, 18), (1, 19)]
    with pytest.raises(Exception, match="column offset is bigint, not string"):
        source.read.format("kctl").options(**{"from.dir": str(logs), "topics": "t"}).schema(
            "offset STRING"
        ).load().count()


def test_stream_is_limited_per_trigger(source: Any, logs: Path, tmp_path: Path) -> None:
    options = {"from.dir": str(logs), "topics": "t", "startingOffsets": "earliest"}
    stream = source.readStream.format("kctl").options(**options, maxOffsetsPerTrigger="16").load()
    sizes: list[int] = []
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        deadline = time.monotonic() + 120
        while sum(sizes) < 40:
            assert time.monotonic() < deadline and query.isActive, query.exception()
            time.sleep(0.1)
    finally:
        query.stop()
    assert max(sizes) <= 16
