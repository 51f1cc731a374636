"""Apache Kafka's own tools read what we wrote, and its broker opens it."""

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from broker.clock import ManualClock
from broker.log.append import AppendOrigin
from broker.log.cleaner import Cleaner
from broker.log.config import CleanerConfig, LogConfig
from broker.log.manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.records.builder import BatchSettings
from broker.records.layout import Codec
from tests.log.support import (
    ABORT,
    COMMIT,
    NOW_MS,
    batch,
    keyed,
    marker,
    open_log,
    produced,
)
from tests.support.real_kafka import java_command, running_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

DUMP = "kafka.tools.DumpLogSegments"
PROBLEMS = ("corrupt", "mismatch", "not found", "Exception", "isvalid: false", "out of order")


def everything_at_once(directory: Path) -> PartitionLog:
    """Codecs, idempotent and transactional producers, aborts, rolls, several epochs."""
    config = LogConfig(segment_bytes=2_000, index_interval_bytes=100)
    log = open_log(directory, config)
    for number in range(60):
        codec = list(Codec)[number % 5]
        settings = BatchSettings(codec=codec)
        data = batch("a" * number, "b", timestamp=NOW_MS + number, settings=settings)
        log.append_as_leader(data, number // 20)
    for number in range(10):
        log.append_as_leader(produced("x", sequence=number, transactional=True), 3)
        kind = ABORT if number % 2 else COMMIT
        log.append_as_leader(marker(kind), 3, AppendOrigin.COORDINATOR)
    return log


def dump(directory: Path, pattern: str, *flags: str) -> str:
    """What kafka-dump-log prints for these files; it needs no broker."""
    files = ",".join(str(path) for path in sorted(directory.glob(pattern)))
    command = java_command(DUMP, "--files", files, *flags)
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_kafka_finds_nothing_wrong_with_our_segments_and_indexes(tmp_path: Path) -> None:
    log = everything_at_once(tmp_path / "orders-0")
    log.close()
    text = dump(log.directory, "*.log", "--print-data-log")
    assert text.count("| offset: ") == log.log_end_offset
    for pattern in ("*.log", "*.index", "*.timeindex", "*.txnindex", "*.snapshot"):
        text = dump(log.directory, pattern)
        assert not [problem for problem in PROBLEMS if problem in text], pattern
    assert "lastSequence: 9" in text


def test_kafka_finds_nothing_wrong_after_recovery_and_compaction(tmp_path: Path) -> None:
    config = LogConfig(
        segment_bytes=1_000, index_interval_bytes=100, cleanup_policy=frozenset({"compact"})
    )
    clock = ManualClock(NOW_MS)
    log = open_log(tmp_path / "orders-0", config, clock)
    for number in range(80):
        value = None if number % 9 == 0 else f"v{number}"
        log.append_as_leader(keyed(f"k{number % 7}", value, NOW_MS + number), 0)
    log.roll()
    log.update_high_watermark(log.log_end_offset)
    memory = CleanerConfig(dedupe_buffer_size=24_000)
    Cleaner(memory, lambda: None).clean(log, 0, log.segments.active.base_offset)
    log.close()
    for pattern in ("*.log", "*.index", "*.timeindex"):
        text = dump(log.directory, pattern)
        assert not [problem for problem in PROBLEMS if problem in text], pattern
    text = dump(log.directory, "*.log", "--print-data-log")
    assert text.count("| offset: ") == 7


def test_kafka_and_we_take_turns_on_the_same_directory(tmp_path: Path) -> None:
    partition = TopicPartition("turns", 0)
    with running_kafka(tmp_path) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(100):
            producer.produce("turns", b"theirs %d" % number)
        assert producer.flush(30) == 0
    logs = LogManager([tmp_path / "data-1"], lambda topic: LogConfig())
    logs.startup()
    assert logs.online_dirs[0].was_clean
    log = logs.logs[partition]
    assert log.log_end_offset == 100
    for number in range(50):
        log.append_as_leader(batch(f"ours {number}"), log.leader_epochs.latest_epoch or 0)
    logs.shutdown()
    with running_kafka(tmp_path) as kafka:
        values = consume(kafka.bootstrap_servers, "turns", 150)
    assert values[:100] == [f"theirs {number}" for number in range(100)]
    assert values[100:] == [f"ours {number}" for number in range(50)]


def consume(servers: str, topic: str, count: int) -> list[str]:
    settings = {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    values: list[str] = []
    try:
        while len(values) < count:
            message = consumer.poll(60)
            assert message is not None
            assert message.error() is None
            values.append(message.value().decode())
    finally:
        consumer.close()
    return values
