"""`kctl import` on our broker and on Apache Kafka, read back by kafka-python."""

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.support.broker import running_broker
from tests.support.kctl import KctlResult, run_kctl

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # in kafka-python itself
    from kafka import KafkaConsumer
    from kafka import TopicPartition as PythonPartition

pytestmark = pytest.mark.timeout(300)

NOW_MS = round(time.time() * 1000)
CONFIGS = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "86400000",
    "message.timestamp.type": "CreateTime",
    "max.message.bytes": "2000000",
    "min.compaction.lag.ms": "86400000",
}


class Record(NamedTuple):
    """A record without its offset, as kafka-python reads it."""

    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@pytest.fixture(scope="module", params=["ours", pytest.param("apache", marks=pytest.mark.kafka)])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "apache":
        yield request.getfixturevalue("real_kafka").bootstrap_servers
        return
    with running_broker(
        tmp_path_factory.mktemp("broker"),
        transaction_state_log_num_partitions=2,
        offsets_topic_num_partitions=2,
    ) as running:
        yield running.bootstrap_servers


def create(
    servers: str, name: str, partitions: int = 2, configs: dict[str, str] | None = None
) -> str:
    client = AdminClient({"bootstrap.servers": servers})
    client.create_topics([NewTopic(name, partitions, 1, config=configs or {})])[name].result(30)
    return name


def write(servers: str, topic: str, count: int, first: int = 0, *, has_keys: bool = False) -> None:
    """Records of every shape, alternating between two partitions."""
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    for at in range(first, first + count):
        producer.produce(
            topic,
            None if at % 7 == 3 else b"value \xff %d" % at,
            None if at % 5 == 1 and not has_keys else b"" if at % 5 == 2 else b"key %d" % at,
            at % 2,
            timestamp=NOW_MS - 1000 + at,
            headers=[("a", b"1"), ("a", None), ("ü", b"")] if at % 3 == 0 else None,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert failed == []


def read(servers: str, topic: str, group: str | None = None) -> list[Record]:
    """All committed records by partition, or those that a group has left."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_id=group,
        consumer_timeout_ms=3000,
    )
    partitions = [PythonPartition(topic, each) for each in consumer.partitions_for_topic(topic)]
    consumer.assign(partitions)
    found = [
        Record(each.partition, each.timestamp, each.key, each.value, tuple(each.headers))
        for each in consumer
    ]
    consumer.close()
    return sorted(found, key=lambda each: each.partition)  # stable: offsets stay in order


def commit(servers: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    places = [TopicPartition(topic, partition, at) for partition, at in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def committed(servers: str, group: str, topic: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    found = consumer.committed([TopicPartition(topic, each) for each in (0, 1)], 30)
    consumer.close()
    return {each.partition: each.offset for each in found}


def own_configs(servers: str, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = AdminClient({"bootstrap.servers": servers})
    found = client.describe_configs([resource])[resource].result(30)
    return {name: entry.value for name, entry in found.items() if entry.source == 1}


def ends(servers: str, topic: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused"})
    found = {
        each: consumer.get_watermark_offsets(TopicPartition(topic, each), 30)[1] for each in (0, 1)
    }
    consumer.close()
    return found


def export(servers: str, topic: str, out: Path, *options: str) -> KctlResult:
    words = [topic, "-b", servers, "--to", str(out), "--engine", "local", "--incremental"]
    result = run_kctl("spark-export", *words, *options)
    assert result.exit_code == 0, result.stderr
    return result


def restore(servers: str, out: Path, *options: str) -> KctlResult:
    return run_kctl("import", str(out), "-b", servers, *options, "-o", "json")


def restored(servers: str, out: Path, *options: str) -> int:
    result = restore(servers, out, *options)
    assert result.exit_code == 0, result.stderr
    return sum(row["records"] for row in result.json)


def test_topic_is_restored_with_its_configs_and_increments_are_added(
    servers: str, tmp_path: Path
) -> None:
    topic = create(servers, "round", configs=CONFIGS)
    write(servers, topic, 400, has_keys=True)
    export(servers, topic, tmp_path)
    planned = restore(servers, tmp_path, "--rename", "round=copy", "--dry-run").json
    assert [(row["topic"], row["records"]) for row in planned] == [("copy", 200), ("copy", 200)]
    assert restored(servers, tmp_path, "--rename", "round=copy") == 400
    assert read(servers, "copy") == read(servers, topic)
    assert own_configs(servers, "copy") == CONFIGS
    assert restored(servers, tmp_path, "--rename", "round=copy") == 0
    write(servers, topic, 50, 400, has_keys=True)
    export(servers, topic, tmp_path)
    assert restored(servers, tmp_path, "--rename", "round=copy") == 50
    assert read(servers, "copy") == read(servers, topic)
    assert len(read(servers, "copy")) == 450


def test_groups_continue_at_their_records(servers: str, tmp_path: Path) -> None:
    topic = create(servers, "grouped")
    write(servers, topic, 300)
    places = {"middle": {0: 70, 1: 30}, "start": {0: 0, 1: 0}, "end": {0: 150, 1: 150}}
    places["half"] = {0: 149, 1: -1}
    left = {}
    for group, offsets in places.items():
        commit(servers, group, topic, {p: at for p, at in offsets.items() if at >= 0})
        left[group] = read(servers, topic, group)
    assert [len(left[name]) for name in ("middle", "start", "end", "half")] == [200, 300, 0, 151]
    export(servers, topic, tmp_path, "--groups")
    assert restored(servers, tmp_path, "--rename", "grouped=again", "--groups") == 300
    for group in places:
        assert read(servers, "again", group) == left[group], group
    assert committed(servers, "end", "again") == ends(servers, "again")
    assert committed(servers, "half", "again")[1] < 0
    assert restored(servers, tmp_path, "--rename", "grouped=again", "--groups") == 0


KILLED = """
import signal, sys
import kctl.restore.rows, kctl.restore.writer
from kctl.restore.writer import ImportWriter
kctl.restore.rows._MAX_WINDOW = kctl.restore.writer.MAX_RECORDS = 250
commits, commit = int(sys.argv.pop(1)), ImportWriter.commit

def commit_or_wait(self):
    global commits
    if not commits:
        self._flush()
        signal.pause()
    commits -= 1
    commit(self)

ImportWriter.commit = commit_or_wait
from kctl.__main__ import main
sys.argv[0] = "kctl"
main()
"""
"""Transactions of 250 records; after some commits, one stays open until the process is killed."""


def test_import_killed_again_and_again_writes_every_record_once(
    servers: str, tmp_path: Path
) -> None:
    topic = create(servers, "killed", configs={"retention.ms": "86400000"})
    write(servers, topic, 12_000)
    commit(servers, "reader", topic, {0: 4321, 1: 5999})
    left = read(servers, topic, "reader")
    export(servers, topic, tmp_path, "--groups")
    arguments = ["import", str(tmp_path), "-b", servers, "--rename", "killed=whole", "--groups"]
    kills = 0
    for wanted, commits in ((300, 4), (3000, 14), (7000, 18)):  # together less than everything
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(commits), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "KCTL_CONFIG": os.devnull},
        )
        while process.poll() is None:
            if sum(ends(servers, "whole").values()) > wanted if exists(servers, "whole") else False:
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
        process.wait(60)
    assert kills == 3
    count = len(read(servers, "whole"))
    assert 0 < count < 12_000
    rest = restored(servers, tmp_path, "--rename", "killed=whole", "--groups")
    assert rest == 12_000 - count
    assert read(servers, "whole") == read(servers, topic)
    assert read(servers, "whole", "reader") == left
    assert own_configs(servers, "whole") == {"retention.ms": "86400000"}
    # Healthy afterwards: no transaction is open, so the last stable offset is the log end.
    hanging = run_kctl("transactions", "list", "-b", servers, "-o", "json").json
    states = {row["transactional_id"]: row["state"] for row in hanging}
    (state,) = (state for name, state in states.items() if name.startswith("kctl-import-whole-"))
    assert state in ("CompleteCommit", "CompleteAbort", "Empty")


def exists(servers: str, topic: str) -> bool:
    return topic in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30).topics


def test_records_kept_aside_are_restored_with_the_others(servers: str, tmp_path: Path) -> None:
    topic = create(servers, "text")
    write(servers, topic, 60)  # the values are not UTF-8
    export(servers, topic, tmp_path, "--value", "string", "--partition-by", "topic,partition")
    assert restored(servers, tmp_path, "--rename", "text=text2") == 60
    assert read(servers, "text2") == read(servers, topic)


def test_topic_without_its_records_is_not_filled_twice(servers: str, tmp_path: Path) -> None:
    topic = create(servers, "own")
    write(servers, topic, 10)
    export(servers, topic, tmp_path)
    refused = restore(servers, tmp_path)
    assert refused.exit_code == 1
    assert "topic own is not empty, and was not filled by an import" in refused.stderr
    assert len(read(servers, topic)) == 10
    assert restored(servers, tmp_path, "--append") == 10
    assert len(read(servers, topic)) == 20
    assert restored(servers, tmp_path, "--append") == 0


def test_deleted_topic_is_imported_from_the_beginning(servers: str, tmp_path: Path) -> None:
    topic = create(servers, "gone")
    write(servers, topic, 10)
    wanted = read(servers, topic)
    export(servers, topic, tmp_path)
    client = AdminClient({"bootstrap.servers": servers})
    for _ in range(2):
        client.delete_topics([topic])[topic].result(30)
        # Kafka removes a topic from its metadata before it is deleted.
        while exists(servers, topic) or "marked for deletion" in restore(servers, tmp_path).stderr:
            time.sleep(0.05)
        assert read(servers, topic) == wanted


def test_what_cannot_be_restored_is_refused_and_changes_nothing(
    servers: str, tmp_path: Path
) -> None:
    topic = create(servers, "refused")
    write(servers, topic, 10)
    out = tmp_path / "out"
    export(servers, topic, out, "--columns", "partition,offset,value", "--partition-by", "topic")
    export(servers, topic, tmp_path / "jsonl", "--format", "jsonl")
    export(servers, topic, tmp_path / "good")
    create(servers, "small", 1)
    create(servers, "stamped", configs={"message.timestamp.type": "LogAppendTime"})
    cases: list[tuple[Path, list[str], str]] = [
        (out, [], "has no column timestamp"),
        (tmp_path / "jsonl", [], "exports in jsonl cannot be imported"),
        (tmp_path / "none", [], "contains no exports"),
        (tmp_path / "good", ["other"], "does not contain topic other"),
        (tmp_path / "good", ["--export", "7"], "has no export 7"),
        (tmp_path / "good", ["--groups"], "the exports contain no group offsets"),
        (tmp_path / "good", ["--rename", "x=y"], "--rename x: not among refused"),
        (tmp_path / "good", ["--rename", "refused"], "expected TOPIC=NAME"),
        (tmp_path / "good", ["--rename", "refused=small"], "has 1 partitions, the exported one 2"),
        (tmp_path / "good", ["--rename", "refused=stamped"], "the timestamps of the records would"),
        (tmp_path / "good", ["--missing-timestamps", "x"], "choose from fail, now"),
        (Path("hdfs://host/x"), [], "only local directories, s3:// and gs:// can be imported"),
    ]
    for place, options, said in cases:
        result = run_kctl("import", str(place).replace(":/h", "://h"), "-b", servers, *options)
        assert result.exit_code in (1, 2), (options, result.output)
        assert said in result.stderr, (options, result.stderr)
    (file,) = (tmp_path / "good").rglob("*.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    damaged = restore(servers, tmp_path / "good", "--rename", "refused=fresh")
    assert "expected crc32c" in damaged.stderr
    assert not exists(servers, "fresh")
    assert read(servers, "small") == []


def test_group_with_members_is_refused(servers: str, tmp_path: Path) -> None:
    topic = create(servers, "watched")
    write(servers, topic, 10)
    commit(servers, "members", topic, {0: 2})
    export(servers, topic, tmp_path, "--groups")
    consumer: Any = Consumer({"bootstrap.servers": servers, "group.id": "members"})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.2)
    refused = restore(servers, tmp_path, "--rename", "watched=copy2", "--groups")
    consumer.close()
    assert "group members has members" in refused.stderr
    assert not exists(servers, "copy2")
    assert restored(servers, tmp_path, "--rename", "watched=copy2") == 10
    refused = restore(servers, tmp_path, "--rename", "watched=copy2", "--groups")
    assert "was imported without --groups" in refused.stderr
