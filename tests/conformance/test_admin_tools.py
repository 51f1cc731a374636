"""Kafka's own admin tools on our broker print what they print on Apache Kafka.

The whole script runs once on each broker, at the same time; then every step's text is compared.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.admin_offsets import produce
from tests.conformance.admin_topics import create, topic
from tests.conformance.tool_steps import Step, run_tool, step, texts_on_both
from tests.support.broker import running_broker
from tests.support.real_kafka import RealKafka
from tests.support.wire import WireClient

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

TOPICS = "org.apache.kafka.tools.TopicCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
CHECK_ONE = ("--election-type", "preferred", "--topic")
FILES = {
    "same.json": {"version": 1, "partitions": [{"topic": "td", "partition": 0, "replicas": [1]}]},
    "dead.json": {"version": 1, "partitions": [{"topic": "td", "partition": 0, "replicas": [7]}]},
    "none.json": {"version": 1, "partitions": [{"topic": "no", "partition": 0, "replicas": [1]}]},
    "move.json": {"version": 1, "topics": [{"topic": "td"}]},
    "trim.json": {"version": 1, "partitions": [{"topic": "td", "partition": 0, "offset": 2}]},
    "over.json": {"version": 1, "partitions": [{"topic": "td", "partition": 0, "offset": 99}]},
}


STEPS = [
    step("create", TOPICS, "--create", "--topic=ta", "--partitions=2", "--config=retention.ms=99"),
    step("create-again", TOPICS, "--create", "--topic=ta"),
    step("create-unless-there", TOPICS, "--create", "--topic=ta", "--if-not-exists"),
    step("create-manual", TOPICS, "--create", "--topic=tm", "--replica-assignment=1:9,9:1"),
    step("create-bad-name", TOPICS, "--create", "--topic=a/b"),
    step("create-too-many-replicas", TOPICS, "--create", "--topic=tb", "--replication-factor=3"),
    step("create-bad-config", TOPICS, "--create", "--topic=tb", "--config=segment.bytes=x"),
    step("list", TOPICS, "--list", "--exclude-internal", "--topic=t."),
    step("describe", TOPICS, "--describe", "--topic=t."),
    step("describe-missing", TOPICS, "--describe", "--topic=none"),
    step("describe-behind", TOPICS, "--describe", "--under-replicated-partitions", "--topic=t."),
    step("grow", TOPICS, "--alter", "--topic=ta", "--partitions=4"),
    step("shrink", TOPICS, "--alter", "--topic=ta", "--partitions=3"),
    step("offsets-latest", OFFSETS, "--topic=td"),
    step("offsets-max-timestamp", OFFSETS, "--topic=td", "--time=-3"),
    step("offsets-of-time", OFFSETS, "--topic=td", "--time=1500"),
    step("delete-records", "org.apache.kafka.tools.DeleteRecordsCommand", "-f", "trim.json"),
    step("delete-too-many", "org.apache.kafka.tools.DeleteRecordsCommand", "-f", "over.json"),
    step("offsets-earliest", OFFSETS, "--topic=td", "--time=-2"),
    step("log-dirs", "org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list=td"),
    step("elect-one", ELECT, *CHECK_ONE, "ta", "--partition=0"),
    step("elect-the-dead", ELECT, *CHECK_ONE, "tm", "--partition=1"),
    step("elect-missing", ELECT, *CHECK_ONE, "none", "--partition=0"),
    step("reassign-generate", REASSIGN, "--generate", "-T", "move.json", "--broker-list=1"),
    step("reassign-same", REASSIGN, "--execute", "-f", "same.json"),
    step("reassign-verify", REASSIGN, "--verify", "-f", "same.json"),
    step("reassign-dead", REASSIGN, "--execute", "-f", "dead.json"),
    step("reassign-missing", REASSIGN, "--execute", "-f", "none.json"),
    step("reassign-list", REASSIGN, "--list"),
    step("features", "org.apache.kafka.tools.FeatureCommand", "describe"),
    step("api-versions", "kafka.admin.BrokerApiVersionsCommand"),
    step("delete", TOPICS, "--delete", "--topic=ta"),
    step("delete-missing", TOPICS, "--delete", "--topic=ta"),
]
FILE_OPTIONS = {"-f": "--{}-json-file", "-T": "--topics-to-move-json-file"}


def _run(step: Step, address: str, files: Path) -> str:
    """Run a step; arguments that name one of FILES become its path."""
    kind = "offset" if "DeleteRecords" in step.tool else "reassignment"
    args = [
        str(files / arg) if arg in FILES else FILE_OPTIONS.get(arg, arg).format(kind)
        for arg in step.args
    ]
    return run_tool(step.tool, address, *args)


def _fill(address: str) -> None:
    with WireClient(address) as wire:
        wire.ask(create(topic("td", retention_ms="-1")), 7)  # timestamps of 1970
        for times in ((1000, 3000), (2000,)):
            wire.ask(produce("td", *times), 9)


@pytest.fixture(scope="module")
def texts(
    real_kafka: RealKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[str, str]]]:
    """By step: what was printed on our broker and on Kafka's."""
    files = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (files / name).write_text(json.dumps(content))

    def script(address: str) -> list[str]:
        _fill(address)
        return [_run(step, address, files) for step in STEPS]

    with running_broker(tmp_path_factory.mktemp("ours"), broker_id=1) as ours:
        yield texts_on_both(STEPS, script, (ours.bootstrap_servers, real_kafka.brokers[0]))


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_text_is_the_one_on_kafka(texts: dict[str, tuple[str, str]], step: str) -> None:
    ours, kafka = texts[step]
    assert ours == kafka
