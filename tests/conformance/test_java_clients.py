"""The Java clients against our broker, through Kafka's own tools."""

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pytest

from tests.clients.face import Message, Sending
from tests.clients.librdkafka import Librdkafka, LibrdkafkaAdmin
from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import java_command

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(
        tmp_path_factory.mktemp("java"),
        offsets_topic_num_partitions=4,
        transaction_state_log_num_partitions=4,
        group_initial_rebalance_delay_ms=100,
        num_partitions=3,
    ) as running:
        yield running
        assert "Traceback" not in running.output()


@pytest.fixture
def servers(broker: RunningBroker) -> str:
    return broker.bootstrap_servers


def tool(name: str, *args: str, text: str = "", package: str = "org.apache.kafka.tools") -> str:
    """The output of one of Kafka's tools, which must succeed without warnings."""
    done = subprocess.run(
        java_command(f"{package}.{name}", *args),
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert " ERROR " not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_and_consumer_hand_records_on(servers: str, codec: str) -> None:
    topic = f"console-{codec}"
    LibrdkafkaAdmin(servers).create_topic(topic, 1, {})
    sent = [f"h:1,g:2\tkey-{number}\tvalue-{number}" for number in range(50)]
    tool(
        "ConsoleProducer",
        *("--bootstrap-server", servers, "--topic", topic, "--compression-codec", codec),
        *("--property", "parse.key=true", "--property", "parse.headers=true"),
        text="".join(f"{line}\n" for line in sent),
        package="kafka.tools",
    )
    output = tool(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", servers, "--topic", topic, "--from-beginning"),
        *("--max-messages", "50", "--isolation-level", "read_committed"),
        *("--property", "print.key=true", "--property", "print.headers=true"),
    )
    assert output.splitlines() == sent


PRODUCERS = {
    "acks 0": ["acks=0", "enable.idempotence=false"],
    "acks 1": ["acks=1", "enable.idempotence=false"],
    "idempotent": ["acks=all", "enable.idempotence=true"],
    "large batches": ["batch.size=1000000", "linger.ms=20", "compression.type=zstd"],
}


@pytest.mark.parametrize("name", PRODUCERS)
def test_performance_tools_count_every_record(servers: str, name: str) -> None:
    topic = f"performance-{name.replace(' ', '-')}"
    LibrdkafkaAdmin(servers).create_topic(topic, 6, {})
    output = tool(
        "ProducerPerformance",
        *("--topic", topic, "--num-records", "50000", "--record-size", "100"),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={servers}"),
        *PRODUCERS[name],
    )
    assert output.splitlines()[-1].startswith("50000 records sent")
    assert _end_offsets(servers, topic, 6) == 50_000
    read = tool(
        "ConsumerPerformance",
        *("--bootstrap-server", servers, "--topic", topic, "--messages", "50000"),
        *("--hide-header", "--timeout", "20000"),
    )
    assert read.splitlines()[-1].split(", ")[4] == "50000"


def _end_offsets(servers: str, topic: str, partitions: int) -> int:
    with closing(Librdkafka().consumer(servers)) as consumer:
        return sum(consumer.bounds(topic, index)[1] for index in range(partitions))


def test_performance_tool_commits_transactions(servers: str) -> None:
    LibrdkafkaAdmin(servers).create_topic("transactional", 3, {})
    tool(
        "ProducerPerformance",
        *("--topic", "transactional", "--num-records", "5000", "--record-size", "100"),
        *("--throughput", "-1", "--transactional-id", "perf", "--transaction-duration-ms", "20"),
        *("--producer-props", f"bootstrap.servers={servers}"),
    )
    output = tool(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", servers, "--topic", "transactional", "--from-beginning"),
        *("--isolation-level", "read_committed", "--max-messages", "5000"),
    )
    assert len(output.splitlines()) == 5000
    assert _end_offsets(servers, "transactional", 3) > 5000  # the markers


def test_verifiable_producer_is_acknowledged_every_record(servers: str) -> None:
    output = tool(
        "VerifiableProducer",
        *("--bootstrap-server", servers, "--topic", "verifiable", "--max-messages", "1000"),
    )
    events = [json.loads(line) for line in output.splitlines()]
    acknowledged = {event["value"] for event in events if event["name"] == "producer_send_success"}
    assert acknowledged == {str(number) for number in range(1000)}
    assert events[-1]["name"] == "tool_data"
    assert (events[-1]["sent"], events[-1]["acked"]) == (1000, 1000)


class Member:
    """A VerifiableConsumer, with its output line by line."""

    def __init__(self, servers: str, *args: str) -> None:
        command = java_command(
            "org.apache.kafka.tools.VerifiableConsumer",
            "--bootstrap-server",
            servers,
            *args,
            heap="128m",
        )
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.events: list[dict[str, object]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))

    def seen(self, name: str) -> list[dict[str, object]]:
        return [event for event in self.events if event["name"] == name]

    def num_assigned(self) -> int:
        """The number of partitions assigned now."""
        changes = [
            event
            for event in self.events
            if event["name"] in ("partitions_assigned", "partitions_revoked")
        ]
        if not changes or changes[-1]["name"] == "partitions_revoked":
            return 0
        partitions = changes[-1]["partitions"]
        assert isinstance(partitions, list)
        return len(partitions)

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def test_verifiable_consumers_share_take_over_and_commit(servers: str) -> None:
    topic = "shared"
    LibrdkafkaAdmin(servers).create_topic(topic, 6, {})
    Librdkafka().produce(
        servers, topic, [Message(b"%d" % n, partition=n % 6) for n in range(600)], Sending()
    )
    group = ("--topic", topic, "--group-id", "verifiable", "--reset-policy", "earliest")
    with closing(Member(servers, *group)) as stays:
        with closing(Member(servers, *group)) as leaves:
            members = (stays, leaves)
            wait_until(lambda: [member.num_assigned() for member in members] == [3, 3])
        wait_until(lambda: stays.num_assigned() == 6)
        wait_until(lambda: _read_by(members) >= 600)
        wait_until(
            lambda: _lags(_groups(servers, "--describe", "--group", "verifiable")) == [0] * 6
        )
    assert "verifiable" in " ".join(_groups(servers, "--list"))
    state = _groups(servers, "--describe", "--group", "verifiable", "--state")
    assert re.search(r"\bEmpty\b", " ".join(state))
    _groups(servers, "--delete", "--group", "verifiable")
    assert "verifiable" not in " ".join(_groups(servers, "--list"))


def _read_by(members: Sequence[Member]) -> int:
    counts = [event["count"] for member in members for event in member.seen("records_consumed")]
    return sum(count for count in counts if isinstance(count, int))


def _groups(servers: str, *args: str) -> list[str]:
    output = tool("consumer.group.ConsumerGroupCommand", "--bootstrap-server", servers, *args)
    return [line for line in output.splitlines() if line]


def _lags(lines: Sequence[str]) -> list[int]:
    return [int(line.split()[5]) for line in lines if line.split()[2].isdigit()]


def test_offsets_of_a_group_are_reset_by_kafkas_tool(servers: str) -> None:
    topic = "reset"
    LibrdkafkaAdmin(servers).create_topic(topic, 2, {})
    Librdkafka().produce(servers, topic, [Message(b"x", partition=n % 2) for n in range(20)])
    group = ("--reset-offsets", "--group", topic, "--topic", topic, "--execute")
    for target, offset in ((("--to-latest",), "10"), (("--shift-by", "-3"), "7")):
        told = " ".join(_groups(servers, *group, *target))
        rows = re.findall(rf"{topic} +{topic} +(\d+) +(\d+)", told)
        assert sorted(rows) == [("0", offset), ("1", offset)]
