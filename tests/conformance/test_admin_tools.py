"""Kafka's own admin tools on our broker print what they print on Apache Kafka.

The whole script runs once on each broker, at the same time; then every step's text is compared.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.api.table import TABLE
from tests.api.wire import Wire
from tests.conformance.admin_offsets import produce
from tests.conformance.admin_topics import create, topic
from tests.support.broker import running_broker
from tests.support.real_kafka import RealKafka, java_command

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


class Step(NamedTuple):
    """One call of a tool; arguments that name one of FILES become its path."""

    name: str
    tool: str
    args: tuple[str, ...]


def _step(name: str, tool: str, *args: str) -> Step:
    return Step(name, tool, args)


STEPS = [
    _step("create", TOPICS, "--create", "--topic=ta", "--partitions=2", "--config=retention.ms=99"),
    _step("create-again", TOPICS, "--create", "--topic=ta"),
    _step("create-unless-there", TOPICS, "--create", "--topic=ta", "--if-not-exists"),
    _step("create-manual", TOPICS, "--create", "--topic=tm", "--replica-assignment=1:9,9:1"),
    _step("create-bad-name", TOPICS, "--create", "--topic=a/b"),
    _step("create-too-many-replicas", TOPICS, "--create", "--topic=tb", "--replication-factor=3"),
    _step("create-bad-config", TOPICS, "--create", "--topic=tb", "--config=segment.bytes=x"),
    _step("list", TOPICS, "--list", "--exclude-internal", "--topic=t."),
    _step("describe", TOPICS, "--describe", "--topic=t."),
    _step("describe-missing", TOPICS, "--describe", "--topic=none"),
    _step("describe-behind", TOPICS, "--describe", "--under-replicated-partitions", "--topic=t."),
    _step("grow", TOPICS, "--alter", "--topic=ta", "--partitions=4"),
    _step("shrink", TOPICS, "--alter", "--topic=ta", "--partitions=3"),
    _step("offsets-latest", OFFSETS, "--topic=td"),
    _step("offsets-max-timestamp", OFFSETS, "--topic=td", "--time=-3"),
    _step("offsets-of-time", OFFSETS, "--topic=td", "--time=1500"),
    _step("delete-records", "org.apache.kafka.tools.DeleteRecordsCommand", "-f", "trim.json"),
    _step("delete-too-many", "org.apache.kafka.tools.DeleteRecordsCommand", "-f", "over.json"),
    _step("offsets-earliest", OFFSETS, "--topic=td", "--time=-2"),
    _step("log-dirs", "org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list=td"),
    _step("elect-one", ELECT, *CHECK_ONE, "ta", "--partition=0"),
    _step("elect-the-dead", ELECT, *CHECK_ONE, "tm", "--partition=1"),
    _step("elect-missing", ELECT, *CHECK_ONE, "none", "--partition=0"),
    _step("reassign-generate", REASSIGN, "--generate", "-T", "move.json", "--broker-list=1"),
    _step("reassign-same", REASSIGN, "--execute", "-f", "same.json"),
    _step("reassign-verify", REASSIGN, "--verify", "-f", "same.json"),
    _step("reassign-dead", REASSIGN, "--execute", "-f", "dead.json"),
    _step("reassign-missing", REASSIGN, "--execute", "-f", "none.json"),
    _step("reassign-list", REASSIGN, "--list"),
    _step("features", "org.apache.kafka.tools.FeatureCommand", "describe"),
    _step("api-versions", "kafka.admin.BrokerApiVersionsCommand"),
    _step("delete", TOPICS, "--delete", "--topic=ta"),
    _step("delete-missing", TOPICS, "--delete", "--topic=ta"),
]
FILE_OPTIONS = {"-f": "--{}-json-file", "-T": "--topics-to-move-json-file"}


def _run(step: Step, address: str, files: Path) -> str:
    """What the tool printed, without what two brokers cannot share."""
    kind = "offset" if "DeleteRecords" in step.tool else "reassignment"
    args = [
        str(files / arg) if arg in FILES else FILE_OPTIONS.get(arg, arg).format(kind)
        for arg in step.args
    ]
    done = subprocess.run(
        java_command(step.tool, "--bootstrap-server", address, *args, heap="128m"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    return f"{_comparable(done.stdout)}{_comparable(done.stderr)}exit {done.returncode}\n"


def _comparable(text: str) -> str:
    text = re.sub(r"127\.0\.0\.1:\d+", "<address>", text)
    text = re.sub(r"TopicId: \S{22}", "TopicId: <id>", text)
    text = re.sub(r'"logDir":"[^"]*"', '"logDir":"<dir>"', text)
    text = re.sub(r"^\[[\d: ,-]+\] ", "", text, flags=re.MULTILINE)  # the time of a log line
    lines = [line for line in text.splitlines() if not line.startswith(("\tat ", "\t... "))]
    return "".join(f"{line}\n" for line in lines if _is_common(line))


def _is_common(line: str) -> bool:
    """Of the versions only those of APIs that both serve: ours grow, Kafka's stay."""
    api = re.match(r"\t\w+\((\d+)\): ", line)
    return api is None or int(api[1]) in TABLE


def _fill(address: str) -> None:
    with Wire(address) as wire:
        wire.ask(create(topic("td", retention_ms="-1")), 7)  # records of 1970
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

    with (
        running_broker(tmp_path_factory.mktemp("ours"), broker_id=1) as ours,
        ThreadPoolExecutor() as threads,
    ):
        printed = threads.map(script, (ours.bootstrap_servers, real_kafka.brokers[0]))
        yield dict(zip((step.name for step in STEPS), zip(*printed, strict=True), strict=True))


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_text_is_the_one_on_kafka(texts: dict[str, tuple[str, str]], step: str) -> None:
    ours, kafka = texts[step]
    assert ours == kafka
