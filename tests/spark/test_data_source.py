"""`spark.read.format("kctl")` and `readStream`, with a real Spark."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kctl.cli.errors import CliError
from kctl.spark.data_source import KctlStreamReader, Request, register
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
    reader = KctlStreamReader(Request(options))
    (log / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    before = reader.latestOffset()
    (log / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    write_log(log, [[(at, 0, None, b"v", ())] for at in range(15)])
    with pytest.raises(CliError, match="topic t was recreated"):
        reader.partitions(before, reader.latestOffset())


def test_regression_stream_refuses_a_log_that_became_shorter(tmp_path: Path) -> None:
    write_log(tmp_path / "t-0", [[(at, 0, None, b"v", ())] for at in range(10)])
    reader = KctlStreamReader(Request({"from.dir": str(tmp_path), "topics": "t"}))
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
