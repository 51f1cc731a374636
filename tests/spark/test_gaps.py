"""Records that are gone before they are exported, brokers that restart, and the result.

Deletions are made and counts are taken with confluent-kafka.
"""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kctl.spark.execution.task import run_task
from kctl.spark.planning.plan import ExportTask, Piece
from kctl.spark.planning.settings import OnGap, TaskSettings
from tests.spark.support import exported
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import Kctl, KctlResult

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(
        tmp_path_factory.mktemp("broker"),
        transaction_state_log_num_partitions=2,
        offsets_topic_num_partitions=2,
    ) as running:
        yield running


def admin(broker: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def create(broker: RunningBroker, topic: str) -> str:
    client = admin(broker)
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    return topic


def write(broker: RunningBroker, topic: str, count: int, first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(first, first + count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(30) == 0


def delete_before(broker: RunningBroker, topic: str, offset: int) -> None:
    client = admin(broker)
    for future in client.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(20)


def readable(broker: RunningBroker, topic: str) -> list[int]:
    """The offsets that a consumer gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "oracle",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    while True:
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            consumer.close()
            return found
        found.append(message.offset() or 0)


def run(kctl: Kctl, broker: RunningBroker, topic: str, out: Path, *words: str) -> KctlResult:
    arguments = [topic, "-b", broker.bootstrap_servers, "--to", str(out), "--engine", "local"]
    return kctl("spark-export", *arguments, *words, "-o", "json")


def manifest(out: Path, number: int) -> Any:
    return json.loads((out / f"export={number:05d}" / "_manifest.json").read_text())


def test_result_is_one_object(kctl: Kctl, broker: RunningBroker, tmp_path: Path) -> None:
    topic = create(broker, "result")
    write(broker, topic, 30)
    result = run(kctl, broker, topic, tmp_path / "out", "--incremental")
    assert result.exit_code == 0, result.stderr
    found = result.json
    assert found["path"] == str(tmp_path / "out" / "export=00001")
    assert found["run_id"] == manifest(tmp_path / "out", 1)["run_id"]
    assert (found["records"], found["undecodable"], found["files"]) == (30, 0, 1)
    assert found["records"] == len(readable(broker, topic))
    assert found["size_bytes"] > 0 and found["seconds"] > 0
    (partition,) = found["partitions"]
    assert partition["range"] == {"first_offset": 0, "end_offset": 30}
    again = run(kctl, broker, topic, tmp_path / "out", "--incremental")
    assert again.exit_code == 0
    assert (again.json["path"], again.json["records"]) == (None, 0)


def test_retention_gap_is_refused_or_skipped_and_named(
    kctl: Kctl, broker: RunningBroker, tmp_path: Path
) -> None:
    topic, out = create(broker, "retention"), tmp_path / "out"
    write(broker, topic, 10)
    assert run(kctl, broker, topic, out, "--incremental").exit_code == 0
    write(broker, topic, 20, 10)
    delete_before(broker, topic, 15)
    refused = run(kctl, broker, topic, out, "--incremental")
    assert refused.exit_code == 1
    said = json.loads(refused.stderr.splitlines()[-1])
    assert "offsets 10 to 14 were deleted before they were exported" in said["error"]
    assert "--on-gap skip" in said["hint"]
    skipped = run(kctl, broker, topic, out, "--incremental", "--on-gap", "skip")
    assert skipped.exit_code == 0, skipped.stderr
    (gap,) = skipped.json["partitions"][0]["gaps"]
    assert (gap["first_offset"], gap["end_offset"]) == (10, 15)
    assert manifest(out, 2)["partitions"][0]["gaps"] == [gap]
    offsets = [row["offset"] for row in exported(out)]
    assert offsets == [*range(10), *readable(broker, topic)]
    write(broker, topic, 5, 30)
    assert run(kctl, broker, topic, out, "--incremental").json["records"] == 5
    verified = kctl("spark-export", "verify", str(out), "-o", "json")
    assert verified.json == []


def test_recreated_topic_is_exported_from_its_beginning_with_skip(
    kctl: Kctl, broker: RunningBroker, tmp_path: Path
) -> None:
    topic, out = create(broker, "again"), tmp_path / "out"
    write(broker, topic, 20)
    assert run(kctl, broker, topic, out, "--incremental").exit_code == 0
    client = admin(broker)
    client.delete_topics([topic])[topic].result(20)
    create(broker, topic)
    write(broker, topic, 12)
    assert run(kctl, broker, topic, out, "--incremental").exit_code == 1
    skipped = run(kctl, broker, topic, out, "--incremental", "--on-gap", "skip")
    assert skipped.exit_code == 0, skipped.stderr
    assert skipped.json["records"] == len(readable(broker, topic)) == 12
    assert "was recreated" in skipped.json["partitions"][0]["gaps"][0]["reason"]
    write(broker, topic, 3, 12)
    assert run(kctl, broker, topic, out, "--incremental").json["records"] == 3
    assert kctl("spark-export", "verify", str(out), "-o", "json").json == []


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    place = tmp_path / "out" / "_staging"
    for name in ("attempts", "done"):
        (place / name).mkdir(parents=True)
    return place


def task(topic: str, end: int) -> ExportTask:
    return ExportTask(0, (Piece(topic, 0, 0, end, 1000),))


def test_regression_records_deleted_during_the_run_are_named_or_skipped(
    broker: RunningBroker, staging: Path
) -> None:
    topic = create(broker, "midway")
    write(broker, topic, 40)
    delete_before(broker, topic, 25)  # after the plan, before the task
    settings = TaskSettings(str(staging), bootstrap_servers=broker.bootstrap_servers)
    with pytest.raises(Exception, match=r"midway-0: offsets 0 to 24 were deleted .* --on-gap skip"):
        run_task(task(topic, 40), settings)
    skipping = TaskSettings(
        str(staging), bootstrap_servers=broker.bootstrap_servers, on_gap=OnGap.SKIP
    )
    (count,) = run_task(task(topic, 40), skipping).counts
    assert count.gaps == ((0, 25),)
    assert count.records == len(readable(broker, topic)) == 15


def test_regression_segment_deleted_during_the_run_is_named(staging: Path, tmp_path: Path) -> None:
    piece = Piece("t", 0, 5, 9, 100, str(tmp_path / "t-0" / f"{5:020d}.log"))
    with pytest.raises(Exception, match="t-0: offsets 5 to 8 were deleted before they were read"):
        run_task(ExportTask(0, (piece,)), TaskSettings(str(staging)))


@pytest.mark.slow
def test_regression_task_waits_for_a_broker_that_restarts(tmp_path: Path, staging: Path) -> None:
    directory = tmp_path / "restarting"
    directory.mkdir()
    with running_broker(directory) as broker:
        topic = create(broker, "t")
        write(broker, topic, 50)
        port = int(broker.bootstrap_servers.rpartition(":")[2])
    settings = TaskSettings(str(staging), bootstrap_servers=f"127.0.0.1:{port}", timeout_s=60)
    counts: list[int] = []

    def export() -> None:
        counts.append(run_task(task("t", 50), settings).counts[0].records)

    thread = threading.Thread(target=export)
    thread.start()
    thread.join(2)
    assert thread.is_alive(), "the task did not wait"
    with running_broker(directory, listeners=f"PLAINTEXT://127.0.0.1:{port}"):
        thread.join(90)
    assert counts == [50]


def test_records_behind_an_open_transaction_are_mentioned(
    kctl: Kctl, broker: RunningBroker, tmp_path: Path
) -> None:
    topic = create(broker, "held")
    write(broker, topic, 5)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "open"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, "x", partition=0)
    producer.flush(20)
    write(broker, topic, 7)
    result = run(kctl, broker, topic, tmp_path / "out")
    assert result.json["records"] == 5
    assert "held-0: 8 offsets are held back by open transactions" in result.stderr
    producer.abort_transaction(20)


def test_too_many_undecodable_records_publish_nothing(
    kctl: Kctl, broker: RunningBroker, tmp_path: Path
) -> None:
    topic = create(broker, "poison")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in (b"good", b"\xff", b"good", b"good"):
        producer.produce(topic, value, partition=0)
    assert producer.flush(20) == 0
    words = ("--value", "string", "--max-undecodable")
    failed = run(kctl, broker, topic, tmp_path / "out", *words, "10%")
    assert failed.exit_code == 1
    assert "1 of 4 records cannot be decoded, more than --max-undecodable 10%" in failed.stderr
    assert not any((tmp_path / "out").glob("export=*"))
    allowed = run(kctl, broker, topic, tmp_path / "out2", *words, "1")
    assert (allowed.exit_code, allowed.json["undecodable"]) == (0, 1)
