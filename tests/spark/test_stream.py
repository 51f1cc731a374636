"""`readStream` of a cluster that changes: records written meanwhile, topics recreated, log starts
moved."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kctl.cli.errors import CliError
from kctl.spark.data_source import KctlStreamReader, Request, register
from tests.admin.conftest import admin_url, scrape
from tests.support.broker import RunningBroker, running_broker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

PARTITIONS = 2
TRANSACTIONS = 200
MAX_OFFSETS = 1000
Place = tuple[int, int]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = {"admin.listeners": "http://127.0.0.1:0", "transaction.state.log.num.partitions": 2}
    with running_broker(tmp_path_factory.mktemp("stream"), **settings) as running:
        yield running


@pytest.fixture
def admin(broker: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def create(admin: AdminClient, topic: str, partitions: int = 1) -> None:
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)


def write(broker: RunningBroker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(30) == 0


def options(broker: RunningBroker, topic: str, **others: str) -> dict[str, str]:
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    return {**servers, "subscribe": topic, "startingOffsets": "earliest", **others}


def reader(broker: RunningBroker, topic: str, **others: str) -> KctlStreamReader:
    return KctlStreamReader(Request(options(broker, topic, **others), is_stream=True))


def read(stream: KctlStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    """The offsets of a batch."""
    return [
        offset
        for part in stream.partitions(start, end)
        for batch in stream.read(part)
        for offset in batch.column(batch.schema.names.index("offset")).to_pylist()
    ]


def test_regression_trigger_asks_each_question_once(
    broker: RunningBroker, admin: AdminClient
) -> None:
    create(admin, "asked")
    write(broker, "asked", 10)

    def requests() -> Counter[str]:
        found: Counter[str] = Counter()
        for (name, labels), count in scrape(admin_url(broker)).items():
            if name == "kafka_network_requestmetrics_requests_total":
                found[dict(labels)["request"]] += int(count)
        return found

    stream = reader(broker, "asked")
    start = stream.initialOffset()
    before = requests()
    end = stream.latestOffset()
    planned = requests() - before
    assert planned["ListOffsets"] == 2  # the beginning and the end of the logs
    assert planned["DescribeLogDirs"] == 0
    assert read(stream, start, end) == list(range(10))
    total = requests() - before
    assert (total["ListOffsets"], total["DescribeLogDirs"]) == (2, 1)


def test_batch_that_was_running_when_the_query_stopped_is_planned_again(
    broker: RunningBroker, admin: AdminClient
) -> None:
    create(admin, "again")
    write(broker, "again", 10)
    stopped = reader(broker, "again")
    start, end = stopped.initialOffset(), stopped.latestOffset()
    write(broker, "again", 10)
    assert read(reader(broker, "again"), start, end) == list(range(10))


def test_recreated_topic_is_named(broker: RunningBroker, admin: AdminClient) -> None:
    create(admin, "recreated")
    write(broker, "recreated", 10)
    stream = reader(broker, "recreated")
    start = stream.latestOffset()
    admin.delete_topics(["recreated"])["recreated"].result(20)
    create(admin, "recreated")
    write(broker, "recreated", 25)
    with pytest.raises(CliError, match="topic recreated was recreated: its topic id was"):
        stream.partitions(start, stream.latestOffset())
    lenient = reader(broker, "recreated", failOnDataLoss="false")
    assert read(lenient, start, lenient.latestOffset()) == list(range(25))


@pytest.mark.parametrize("is_planned_before", [False, True])
def test_records_deleted_before_they_were_read_are_named(
    broker: RunningBroker, admin: AdminClient, is_planned_before: bool
) -> None:
    topic = f"deleted-{is_planned_before}"
    create(admin, topic)
    write(broker, topic, 10)
    strict, lenient = reader(broker, topic), reader(broker, topic, failOnDataLoss="false")
    start = strict.initialOffset()
    ends = [each.latestOffset() for each in (strict, lenient)]
    parts = strict.partitions(start, ends[0]) if is_planned_before else []
    admin.delete_records([TopicPartition(topic, 0, 6)])
    place = TopicPartition(topic, 0)
    deadline = time.monotonic() + 30
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "none"})
    while consumer.get_watermark_offsets(place, timeout=10)[0] != 6:
        assert time.monotonic() < deadline
    consumer.close()
    with pytest.raises(CliError, match=f"{topic}-0.*offsets 0 to 5 were deleted"):
        if is_planned_before:
            list(strict.read(parts[0]))
        else:
            strict.partitions(start, reader(broker, topic).latestOffset())
            read(strict, start, ends[0])
    assert read(lenient, start, ends[1]) == [6, 7, 8, 9]


def test_regression_available_now_is_limited_per_batch_and_ends(
    broker: RunningBroker, admin: AdminClient
) -> None:
    create(admin, "now")
    write(broker, "now", 10)
    stream = reader(broker, "now", maxOffsetsPerTrigger="4")
    stream.prepareForTriggerAvailableNow()
    write(broker, "now", 10)  # later than the trigger
    limit = stream.getDefaultReadLimit()
    position, batches = stream.initialOffset(), []
    while (following := stream.latestOffset(position, limit)) != position:
        batches.append(read(stream, position, following))
        assert stream.reportLatestOffset() == {"now-0": 10}
        position = following
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


class Writer(threading.Thread):
    """Writes some transactions per second, every third of which is aborted.

    Their number is limited, so that a slow machine does not have more to read.
    """

    def __init__(self, broker: RunningBroker, topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._is_stopped = threading.Event()
        self.partitions = PARTITIONS
        self._producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic}
        )
        self._producer.init_transactions(30)

    def run(self) -> None:
        for number in range(TRANSACTIONS):
            if self._is_stopped.wait(0.03):
                break
            self._producer.begin_transaction()
            for place in range(20):
                self._producer.produce(self._topic, b"x" * 200, partition=place % self.partitions)
            if number % 3:
                self._producer.commit_transaction(60)
            else:
                self._producer.abort_transaction(60)

    def write_to(self, partitions: int) -> None:
        """Write to this many partitions, as soon as the producer has seen them all.

        Until then it refuses the new ones at once: librdkafka queries a known topic every minute.
        """
        deadline = time.monotonic() + 30
        while len(self._producer.list_topics(self._topic, 10).topics[self._topic].partitions) < (
            partitions
        ):
            assert time.monotonic() < deadline, "the producer does not see the new partition"
            time.sleep(0.05)
        self.partitions = partitions

    def stop(self) -> None:
        self._is_stopped.set()
        self.join()
        self._producer.flush(30)


def consumed(broker: RunningBroker, topic: str, partitions: int) -> list[Place]:
    """What a consumer of committed records reads, up to the ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reference",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    found: list[Place] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            ended.add(message.partition() or 0)
        else:
            found.append((message.partition() or 0, message.offset() or 0))
    consumer.close()
    return sorted(found)


@pytest.mark.slow
def test_stream_under_load_has_each_committed_record_once(
    spark: Any, broker: RunningBroker, admin: AdminClient, tmp_path: Path
) -> None:
    """Transactions are committed and aborted meanwhile, a partition is added, and the query is
    stopped and started again."""
    register(spark)
    topic = "load"
    create(admin, topic, PARTITIONS)

    def start(**trigger: Any) -> Any:
        limited = options(broker, topic, maxOffsetsPerTrigger=str(MAX_OFFSETS))
        stream = spark.readStream.format("kctl").options(**limited).load()
        return (
            stream.select("partition", "offset")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(**trigger)
            .start()
        )

    def batches() -> int:
        return len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*")))

    def wait_until(is_done: Callable[[], bool], query: Any) -> None:
        deadline = time.monotonic() + 200
        while not is_done():
            assert query.isActive, query.exception()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    writer = Writer(broker, topic)
    writer.start()
    try:
        query = start(processingTime="0 seconds")
        wait_until(lambda: batches() >= 1, query)
        query.stop()
        admin.create_partitions([NewPartitions(topic, PARTITIONS + 1)])[topic].result(20)
        writer.write_to(PARTITIONS + 1)
        query = start(processingTime="0 seconds")
        done = batches()
        wait_until(lambda: batches() >= done + 1, query)
        query.stop()
    finally:
        writer.stop()
    last = start(availableNow=True)
    assert last.awaitTermination(200)
    # The sink's log names the files of finished batches; a stopped batch may leave others.
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    found = sorted((row["partition"], row["offset"]) for row in rows)
    assert found == consumed(broker, topic, PARTITIONS + 1)
    paths = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda p: int(p.name))
    ends = [json.loads(path.read_text().splitlines()[-1]) for path in paths]
    steps = [
        sum(max(0, after[name] - before.get(name, 0)) for name in after if name != "topic_ids")
        for before, after in zip([{}, *ends], ends, strict=False)
    ]
    assert max(steps) <= MAX_OFFSETS
