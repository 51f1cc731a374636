"""produce, consume, groups and perf on Apache Kafka, compared with its own tools."""

import json
import re
import shlex
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from kctl.views.kafka_text.perf import CONSUMER_HEADER
from tests.support.cluster import wait_until
from tests.support.kctl import KctlResult, run_kctl
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def kctl(kafka: RealKafka, *args: str, stdin: str | None = None) -> KctlResult:
    return run_kctl(*args, "-b", kafka.bootstrap_servers, stdin=stdin)


def theirs(kafka: RealKafka, line: str, tool: str = TOOL) -> str:
    answer = kafka.tool(tool, "--bootstrap-server", kafka.bootstrap_servers, *shlex.split(line))
    return answer.stdout


def ours(kafka: RealKafka, line: str) -> str:
    return kctl(kafka, *shlex.split(line), "--format", "kafka").output


@pytest.fixture(scope="module")
def topic(real_kafka: RealKafka) -> str:
    """Forty records in three partitions, read by the group `g-empty`."""
    name = "groups-beside"
    kctl(real_kafka, "topics", "create", name, "-p", "3", "-c", "retention.ms=-1")
    records = [
        {"key": f"k{n}", "value": str(n), "timestamp": 10_000 + n, "headers": {"h": "x"}}
        for n in range(40)
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    assert kctl(real_kafka, "produce", name, "-i", "json", stdin=lines).exit_code == 0
    assert kctl(real_kafka, "consume", name, "-g", "g-empty", "-e").exit_code == 0
    return name


@pytest.fixture
def member(real_kafka: RealKafka, topic: str) -> Iterator[str]:
    """A group with one static member."""
    servers = real_kafka.bootstrap_servers
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "g-live", "group.instance.id": "i-1"}
    )
    assigned: list[object] = []
    consumer.subscribe([topic], on_assign=lambda _, partitions: assigned.extend(partitions))
    while not assigned:
        consumer.poll(0.1)
    yield "g-live"
    consumer.close()


@pytest.mark.parametrize(
    ("their_line", "our_line"),
    [
        ("--describe --group g-empty", "groups describe g-empty"),
        ("--describe --group g-empty --state", "groups describe g-empty --state"),
        ("--describe --group g-empty --members", "groups describe g-empty --members"),
        ("--describe --group none", "groups describe none"),
        (
            "--reset-offsets --group g-empty --topic {topic} --to-earliest --dry-run",
            "groups reset-offsets g-empty --topic {topic} --to-earliest",
        ),
        (
            "--reset-offsets --group g-empty --topic {topic}:0,2 --shift-by -2 --dry-run",
            "groups reset-offsets g-empty --topic {topic}:0,2 --shift-by -2",
        ),
        (
            "--reset-offsets --group g-empty --all-topics --to-datetime 1970-01-01T00:00:10.020"
            " --dry-run --export",
            "groups reset-offsets g-empty --all-topics --to-datetime 1970-01-01T00:00:10.020"
            " --export",
        ),
        ("--list", "groups list"),
        ("--delete --group none", "groups delete none --yes"),
        (
            "--delete-offsets --group none --topic {topic}",
            "groups delete-offsets none --topic {topic} --yes",
        ),
    ],
)
def test_groups_text_equals_kafkas_tool(
    real_kafka: RealKafka, topic: str, their_line: str, our_line: str
) -> None:
    expected = theirs(real_kafka, their_line.format(topic=topic))
    assert expected
    assert ours(real_kafka, our_line.format(topic=topic)) == expected


def test_text_of_a_group_with_a_member_equals_kafkas_tool(
    real_kafka: RealKafka, topic: str, member: str
) -> None:
    for view in ("", "--members", "--members --verbose", "--state"):
        expected = theirs(real_kafka, f"--describe --group {member} {view}")
        assert member in expected
        assert ours(real_kafka, f"groups describe {member} {view}") == expected
    refused = f"reset-offsets {member} --topic {topic} --to-earliest"
    expected = theirs(
        real_kafka, f"--reset-offsets --group {member} --topic {topic} --to-earliest --dry-run"
    )
    assert ours(real_kafka, f"groups {refused}") == expected


def test_reset_and_deletion_are_seen_by_kafkas_tool(real_kafka: RealKafka, topic: str) -> None:
    kctl(real_kafka, "groups", "reset-offsets", "g-moved", "-t", topic, "--to-offset", "1", "--yes")
    shown = theirs(real_kafka, "--describe --group g-moved")
    assert [line.split()[3] for line in shown.split("\n")[2:]] == ["1", "1", "1"]
    rows = json.loads(kctl(real_kafka, "groups", "describe", "g-moved", "-o", "json").output)
    assert all(row["time_lag_ms"] > 10**12 for row in rows)  # the records are from 1970
    deleted = kctl(real_kafka, "groups", "delete-offsets", "g-moved", "-t", f"{topic}:0", "--yes")
    assert deleted.exit_code == 0
    assert len(theirs(real_kafka, "--describe --group g-moved").split("\n")) == 4
    assert kctl(real_kafka, "groups", "delete", "g-moved", "--yes").exit_code == 0
    assert "does not exist" in theirs(real_kafka, "--describe --group g-moved")


def test_consume_output_equals_kafka_console_consumer(real_kafka: RealKafka, topic: str) -> None:
    printed = " ".join(
        f"--property print.{name}=true"
        for name in ("key", "timestamp", "partition", "offset", "headers")
    )
    line = f"--topic {topic} --from-beginning --timeout-ms 8000 --max-messages 40 {printed}"
    expected = theirs(real_kafka, line, CONSOLE)
    found = ours(real_kafka, f"consume {topic} --exit {printed}")
    assert sorted(found.splitlines()) == sorted(expected.splitlines())
    assert len(found.splitlines()) == 40


def test_transaction_and_compression_on_a_real_kafka(real_kafka: RealKafka) -> None:
    name = "txn-real"
    kctl(real_kafka, "topics", "create", name)
    words = ["produce", name, "--transactional-id", "loader", "-z", "zstd"]
    assert kctl(real_kafka, *words, stdin="a\nb\n").exit_code == 0
    # The coordinator answers before the markers are written; until then, the records are unread.
    stable = ["offsets", name, "--read-committed", "-o", "json"]
    wait_until(lambda: kctl(real_kafka, *stable).json[0]["offset"] == 3, "the marker is written")
    assert kctl(real_kafka, "consume", name, "--exit").output == "a\nb\n"
    read = theirs(
        real_kafka,
        f"--topic {name} --from-beginning --max-messages 2 --isolation-level read_committed",
        CONSOLE,
    )
    assert read == "a\nb\n"


def test_perf_runs_and_its_lines_look_like_kafkas(real_kafka: RealKafka) -> None:
    name = "perf-real"
    kctl(real_kafka, "topics", "create", name)
    produced = kctl(real_kafka, "perf", "produce", name, "-n", "1000", "--format", "kafka").output
    assert re.match(r"1000 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), ", produced)
    words = f"--topic {name} --messages 1000 --timeout 15000"
    head, *_ = theirs(real_kafka, words, "org.apache.kafka.tools.ConsumerPerformance").splitlines()
    assert head == CONSUMER_HEADER
    latency = kctl(real_kafka, "perf", "latency", name, "-n", "5", "-o", "json")
    assert json.loads(latency.output)["records"] == 5
