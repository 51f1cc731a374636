"""Apache Kafka's tools and broker read the logs that we write."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from broker.clock import ManualClock
from broker.log.append import AppendOrigin
from broker.log.checkpoints import read_offsets
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
    files_of,
    keyed,
    marker,
    open_log,
    produced,
)
from tests.support.consumed import value_of
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
            values.append(value_of(message).decode())
    finally:
        consumer.close()
    return values


def test_our_cleaner_writes_the_segments_that_kafkas_cleaner_writes(tmp_path: Path) -> None:
    """The same log, compacted by both: every file of the cleaned segments is the same."""
    tool = "org.apache.kafka.tools.TopicCommand"
    settings = {"log.cleaner.backoff.ms": 50, "log.index.interval.bytes": 200}
    small = ("--config", "segment.bytes=1500", "--config", "min.cleanable.dirty.ratio=0")
    with running_kafka(tmp_path, settings=settings) as kafka:
        server = ("--bootstrap-server", kafka.bootstrap_servers)
        kafka.tool(tool, *server, "--create", "--topic", "compacted", *small)
        produce_keys(kafka.bootstrap_servers, "compacted", 200)
        produce_transactions(kafka.bootstrap_servers, "compacted", 12)
        produce_keys(kafka.bootstrap_servers, "compacted", 100)
    ours = tmp_path / "ours"
    shutil.copytree(tmp_path / "data-1", ours)
    with running_kafka(tmp_path, settings=settings) as kafka:
        server = ("--bootstrap-server", kafka.bootstrap_servers)
        compact = ("--alter", "--topic", "compacted", "--add-config", "cleanup.policy=compact")
        kafka.tool("kafka.admin.ConfigCommand", *server, *compact)
        cleaned_to = wait_for_cleaner(kafka.log_dir(1), TopicPartition("compacted", 0))
    config = LogConfig(
        segment_bytes=1_500,
        index_interval_bytes=200,
        min_cleanable_dirty_ratio=0.0,
        cleanup_policy=frozenset({"compact"}),
    )
    logs = LogManager([ours], lambda topic: config, cleaner=CleanerConfig())
    logs.startup()
    log = logs.logs[TopicPartition("compacted", 0)]
    size_before = log.size_in_bytes
    log.update_high_watermark(log.log_end_offset)
    logs.cleaner.clean_filthiest([log])
    logs.shutdown()
    assert read_offsets(ours / "cleaner-offset-checkpoint") == {log.partition: cleaned_to}
    kinds = (".log", ".index", ".timeindex", ".txnindex")
    theirs = files_of(tmp_path / "data-1" / "compacted-0", *kinds)
    assert files_of(ours / "compacted-0", *kinds) == theirs
    assert len(theirs) >= 6
    assert sum(len(data) for name, data in theirs.items() if name.endswith(".log")) < size_before


def produce_keys(servers: str, topic: str, count: int) -> None:
    """Batches of seven records over eleven keys, in changing order."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1_000})
    for number in range(count):
        key, value = b"key-%d" % (number * number % 11), b"value %d " % number * (number % 5)
        producer.produce(topic, value, key, timestamp=NOW_MS + number)
        if number % 7 == 6:
            assert producer.flush(30) == 0
    assert producer.flush(30) == 0


def produce_transactions(servers: str, topic: str, count: int) -> None:
    """Two producers in turn; every third transaction is aborted."""
    producers = [
        Producer({"bootstrap.servers": servers, "transactional.id": name}) for name in ("p", "q")
    ]
    for producer in producers:
        producer.init_transactions(30)
    for number in range(count):
        producer = producers[number % 2]
        producer.begin_transaction()
        for part in range(5):
            producer.produce(topic, b"transaction %d" % number, b"key-%d" % (number + part))
        if number % 3:
            producer.commit_transaction(30)
        else:
            assert producer.flush(30) == 0
            producer.abort_transaction(30)


def wait_for_cleaner(log_dir: Path, partition: TopicPartition) -> int:
    """The offset in Kafka's cleaner checkpoint; waits until there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        cleaned = read_offsets(log_dir / "cleaner-offset-checkpoint").get(partition)
        if cleaned:
            return cleaned
        time.sleep(0.1)  # another process writes the file, so there is no event to wait for
    raise AssertionError("Kafka did not clean the log within a minute")
