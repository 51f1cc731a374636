"""topics, configs, offsets, delete-records and log-dirs compared with Kafka's own tools."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.kctl import Kctl, KctlResult, run_kctl
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


class Beside:
    """kctl and Kafka's tools on the same cluster."""

    def __init__(self, kctl: Kctl, kafka: RealKafka) -> None:
        self._kctl, self._kafka = kctl, kafka
        self._servers = ["--bootstrap-server", kafka.bootstrap_servers]

    def ours(self, *args: str) -> KctlResult:
        """Run kctl."""
        return self._kctl(*args, *self._servers)

    def same(self, tool: str, theirs: list[str], ours: list[str]) -> str:
        """Run both; the text must be the same, and is given back."""
        answer = self._kafka.tool(tool, *self._servers, *theirs)
        result = self.ours(*ours, "--format", "kafka")
        assert result.output == answer.stdout
        assert result.exit_code == answer.returncode
        return result.output


@pytest.fixture(scope="module")
def beside(real_kafka: RealKafka) -> Iterator[Beside]:
    """Topics for the whole module: k1-0 is only read, k1-3 loses records, k1-4 is altered."""
    both = Beside(run_kctl, real_kafka)
    names = [f"k1-{number}" for number in range(5)]
    both.ours("topics", "create", *names, "-p", "3", "-c", "retention.ms=3600000")
    both.ours(
        "topics", "create", "k1.dots", "-c", "cleanup.policy=compact", "-c", "segment.ms=9000"
    )
    fill(real_kafka)
    yield both
    both.ours("topics", "delete", "k1.*", "--regex", "--yes")


def fill(kafka: RealKafka) -> None:
    """Three records a partition. The producer ends here: one that lives makes its topic again."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(9):
        for topic in ("k1-0", "k1-3"):
            producer.produce(topic, str(number).encode(), partition=number % 3)
    assert producer.flush(20) == 0


def test_topics_text_equals_kafkas_tool(beside: Beside) -> None:
    assert "k1-4" in beside.same(TOPICS, ["--list"], ["topics", "list"])
    described = beside.same(TOPICS, ["--describe"], ["topics", "describe"])
    assert "cleanup.policy=compact" in described
    beside.same(
        TOPICS,
        ["--describe", "--topics-with-overrides", "--topic", "k1.*"],
        ["topics", "describe", "--topics-with-overrides", "--topic", "k1.*"],
    )
    at_min = ["--at-min-isr-partitions", "--topic", "k1.*"]
    beside.same(TOPICS, ["--describe", *at_min], ["topics", "describe", *at_min])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["--create", "--topic", "k1-0"], ["create"]),
        (["--create", "--topic", "k1 bad"], ["create"]),
        (["--create", "--topic", "k1-x", "--replication-factor", "7"], ["create"]),
        (["--create", "--topic", "k1-x", "--config", "retention.ms=a"], ["create"]),
        (["--create", "--topic", "k1-0", "--if-not-exists"], ["create"]),
        (["--alter", "--topic", "k1-0", "--partitions", "2"], ["alter", "--yes"]),
        (["--alter", "--topic", "none", "--partitions", "2"], ["alter", "--yes"]),
        (["--describe", "--topic", "none"], ["describe"]),
        (["--delete", "--topic", "none"], ["delete", "--yes"]),
        (["--delete", "--topic", "none", "--if-exists"], ["delete", "--yes"]),
    ],
)
def test_refusal_texts_equal_kafkas_tool(
    beside: Beside, theirs: list[str], ours: list[str]
) -> None:
    beside.same(TOPICS, theirs, ["topics", *ours, *theirs[1:]])


def test_configs_text_equals_kafkas_tool(beside: Beside) -> None:
    topic = ["--entity-type", "topics", "--entity-name", "k1.dots"]
    beside.same(CONFIGS, ["--describe", *topic], ["configs", "describe", *topic])
    beside.same(CONFIGS, ["--describe", "--all", *topic], ["configs", "describe", "--all", *topic])
    broker = ["--broker", "1", "--all"]
    assert "log.dirs" in beside.same(
        CONFIGS, ["--describe", *broker], ["configs", "describe", *broker]
    )
    defaults = ["--entity-type", "brokers", "--entity-default"]
    beside.same(CONFIGS, ["--describe", *defaults], ["configs", "describe", *defaults])
    altered = ["--entity-type", "topics", "--entity-name", "k1-4"]
    added = [*altered, "--add-config", "retention.ms=77,cleanup.policy=[compact,delete]"]
    beside.same(CONFIGS, ["--alter", *added], ["configs", "alter", "--yes", *added])
    beside.same(CONFIGS, ["--describe", *altered], ["configs", "describe", *altered])


def test_offsets_text_equals_kafkas_tool(beside: Beside) -> None:
    for words in (
        ["--topic", "k1.*"],
        ["--topic-partitions", "k1-0:1-3,k1-1:0"],
        ["--topic", "k1-0", "--time", "max-timestamp"],
        ["--topic", "k1-0", "--time", "earliest", "--partitions", "0,2"],
    ):
        beside.same(OFFSETS, words, ["offsets", *words])


def test_delete_records_text_equals_kafkas_tool(beside: Beside, tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    entries = [
        {"topic": "k1-3", "partition": p, "offset": o} for p, o in ((0, 1), (1, 99), (2, -1))
    ]
    entries.append({"topic": "k1.dots", "partition": 0, "offset": 0})
    path.write_text(json.dumps({"partitions": entries, "version": 1}))
    words = ["--offset-json-file", str(path)]
    text = beside.same(RECORDS, words, ["delete-records", "--yes", *words])
    assert "low_watermark: 3" in text
    assert "PolicyViolationException" in text


def test_log_dirs_text_equals_kafkas_tool(beside: Beside) -> None:
    words = ["--describe", "--topic-list", "k1-0,k1-1,k1.dots"]
    beside.same(LOG_DIRS, words, ["log-dirs", *words])


def test_sizes_and_offsets_of_a_real_cluster_are_found(beside: Beside) -> None:
    (topic,) = beside.ours("topics", "describe", "k1-0", "-o", "json").json
    assert [partition["records"] for partition in topic["partitions"]] == [3, 3, 3]
    assert all(partition["size_bytes"] > 0 for partition in topic["partitions"])


def test_clone_and_growth_work_on_a_real_cluster(beside: Beside) -> None:
    assert beside.ours("topics", "clone", "k1.dots", "k1-clone").exit_code == 0
    assert beside.ours("topics", "alter", "k1-clone", "-p", "4", "--yes").exit_code == 0
    (clone,) = beside.ours("topics", "describe", "k1-clone", "-o", "json").json
    assert len(clone["partitions"]) == 4
    assert clone["configs"] == {"cleanup.policy": "compact", "segment.ms": "9000"}
