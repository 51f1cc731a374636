"""Replicas, controller, segments and events of three brokers of Apache Kafka."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.support.cluster import wait_until
from tests.support.kctl import run_kctl
from tests.support.real_kafka import RealKafka, running_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    with running_kafka(tmp_path_factory.mktemp("kafka"), brokers=3) as cluster:
        yield cluster


def ok(kafka: RealKafka, *args: str, stdin: str | None = None) -> Any:
    result = run_kctl("-b", kafka.bootstrap_servers, *args, "-o", "json", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.json if result.output else None


def create_everywhere(kafka: RealKafka, topic: str, assignment: str) -> None:
    """Create a topic, and wait until every broker knows it: Kafka tells them one by one."""
    ok(kafka, "topics", "create", topic, "--replica-assignment", assignment)
    for address in kafka.brokers:
        described = ("topics", "describe", topic, "-b", address)
        wait_until(
            lambda words=described: run_kctl(*words).exit_code == 0,  # type: ignore[misc]
            f"{address} knows {topic}",
        )


def end_on_disk(kafka: RealKafka, broker: int, name: str) -> int:
    """The log end offset that Kafka's own tool finds in a broker's files."""
    path = kafka.log_dir(broker) / name / f"{0:020}.log"
    dumped = kafka.tool("kafka.tools.DumpLogSegments", "--files", str(path)).stdout
    return max(map(int, re.findall(r"lastOffset: (\d+)", dumped))) + 1


def test_offsets_of_every_replica_equal_its_files(three: RealKafka) -> None:
    create_everywhere(three, "seen", "2:3:1")
    ok(three, "produce", "seen", stdin="".join(f"{number}\n" for number in range(50)))

    def settled() -> list[dict[str, Any]]:
        rows = ok(three, "replicas", "list", "seen")
        is_so = all(row["high_watermark"] == 50 for row in rows)
        return rows if is_so else []

    rows = wait_until(settled, "HW reaches the followers")
    assert [row["broker"] for row in rows] == [2, 3, 1]
    assert [row["role"] for row in rows] == ["leader", "follower", "follower"]
    for row in rows:
        assert row["log_end_offset"] == end_on_disk(three, row["broker"], "seen-0") == 50
        assert (row["status"], row["lag"], row["log_start_offset"]) == ("isr", 0, 0)


def test_controller_epoch_is_that_of_the_znode(three: RealKafka) -> None:
    found = ok(three, "cluster", "describe", "-z", three.zookeeper)
    client = KazooClient(three.zookeeper)
    client.start(timeout=20)
    try:
        epoch, _ = client.get("/controller_epoch")
        data, stat = client.get("/controller")
    finally:
        client.stop()
        client.close()
    assert found["controller_epoch"] == int(epoch)
    assert found["controller_id"] == json.loads(data)["brokerid"]
    assert found["controller_since"].startswith(
        subprocess.run(
            ["date", "-u", "-d", f"@{stat.ctime // 1000}", "+%Y-%m-%dT%H:%M:%S"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )


def test_leader_change_is_marked_and_seen_as_an_event(three: RealKafka) -> None:
    ok(three, "topics", "create", "moving", "--replica-assignment", "1:2:3")
    words = ["-b", three.bootstrap_servers, "events", "--interval", "0.2", "-o", "jsonl"]
    with subprocess.Popen(
        [sys.executable, "-m", "kctl", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None and process.stdout is not None
            process.stderr.readline()
            plan = {"version": 1, "partitions": [
                {"topic": "moving", "partition": 0, "replicas": [3, 2, 1]}]}  # fmt: skip
            path = three.directory / "plan.json"
            path.write_text(json.dumps(plan))
            ok(three, "reassign", "execute", str(path), "--yes")
            events = (json.loads(line) for line in process.stdout)
            kinds = {"replicas"}
            for event in events:
                kinds -= {event["event"]} if event["subject"] == "moving-0" else set()
                if not kinds:
                    break
        finally:
            process.kill()
    (topic,) = ok(three, "topics", "describe", "moving")
    (partition,) = topic["partitions"]
    assert (partition["leader"], partition["preferred_leader"]) == (1, False)


def test_retention_of_a_topic_gives_the_time_of_deletion(three: RealKafka) -> None:
    ok(
        three,
        "topics",
        "create",
        "aged",
        "--replica-assignment",
        "1",
        "--config",
        "retention.ms=60000",
    )
    ok(three, "produce", "aged", "--timestamp", "1700000000000", stdin="old\n")
    directory = str(three.log_dir(1) / "aged-0")
    (segment,) = ok(three, "dump-log", "segments", directory)
    assert (segment["deleted_from"], segment["reason"]) == ("now", "retention.ms")
    assert segment["last_time"].startswith("2023-11-14T22:13:20")
