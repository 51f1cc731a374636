"""The Java consumer and Kafka's tools with groups of our broker."""

import subprocess
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.group.test_stories import SETTINGS
from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import java_command

pytestmark = pytest.mark.kafka

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RECORDS = 30


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("java"), **SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def topic(broker: RunningBroker) -> str:
    """A topic with RECORDS records, in three partitions."""
    name = f"java-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(10)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(name, str(number), partition=number % 3)
    assert producer.flush(10) == 0
    return name


def groups_tool(broker: RunningBroker, *args: str) -> list[list[str]]:
    """The output of kafka-consumer-groups, by line and word."""
    command = java_command(GROUPS_TOOL, "--bootstrap-server", broker.bootstrap_servers, *args)
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    return [line.split() for line in run.stdout.splitlines() if line.split()]


def offsets(broker: RunningBroker, group_id: str) -> dict[str, tuple[str, str]]:
    """Committed offset and log end offset by partition, from the tool."""
    lines = groups_tool(broker, "--describe", "--group", group_id, "--offsets")
    header = next(line for line in lines if line[:2] == ["GROUP", "TOPIC"])
    assert header[2:5] == ["PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET"]
    return {line[2]: (line[3], line[4]) for line in lines[lines.index(header) + 1 :]}


def test_java_consumer_reads_in_a_group_and_commits(broker: RunningBroker, topic: str) -> None:
    command = java_command(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic),
        *("--group", "java", "--from-beginning", "--max-messages", str(RECORDS)),
    )
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert sorted(map(int, run.stdout.split())) == list(range(RECORDS)), run.stderr
    assert offsets(broker, "java") == {str(n): ("10", "10") for n in range(3)}


def test_groups_tool_resets_and_deletes(broker: RunningBroker, topic: str) -> None:
    group = ("--group", "reset")
    groups_tool(
        broker, *group, "--reset-offsets", "--to-offset", "4", "--topic", topic, "--execute"
    )
    assert offsets(broker, "reset") == {str(n): ("4", "10") for n in range(3)}
    assert ["reset", "Empty"] in groups_tool(broker, "--list", "--state")
    groups_tool(broker, *group, "--delete-offsets", "--topic", f"{topic}:1")
    assert offsets(broker, "reset") == {str(n): ("4", "10") for n in (0, 2)}
    groups_tool(broker, *group, "--delete")
    assert ["reset"] not in groups_tool(broker, "--list")
