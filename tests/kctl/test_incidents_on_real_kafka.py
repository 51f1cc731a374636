"""kctl during an incident, on brokers of Apache Kafka: one hung, one dead but registered."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.cluster import wait_until
from tests.support.kctl import KctlResult, run_kctl
from tests.support.real_kafka import RealKafka, running_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

TIMEOUT_S = 3.0
SETTINGS = {
    "zookeeper.session.timeout.ms": 60_000,  # the broker stays registered while it hangs
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 6,
}
READING = [
    ("topics", "describe", "orders", "-o", "wide"),
    ("groups", "list"),
    ("groups", "describe", "--all", "--totals"),
    ("offsets", "orders"),
    ("api-versions",),
    ("throttle", "list"),
    ("log-dirs", "--by", "broker"),
    ("consume", "orders", "--exit"),
    ("replicas", "verify", "replicated"),
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    with running_kafka(tmp_path_factory.mktemp("kafka"), brokers=2, settings=SETTINGS) as cluster:
        servers = cluster.bootstrap_servers
        create = ("topics", "create", "orders", "--replica-assignment", "1,2,1,2")
        assert run_kctl(*create, "-b", servers).exit_code == 0
        replicated = ("topics", "create", "replicated", "--replica-assignment", "1:2,2:1")
        assert run_kctl(*replicated, "-b", servers).exit_code == 0
        for broker in cluster.brokers:  # brokers learn of new topics one after the other
            wait_until(partial(_has_topics, broker), "the broker knows the topics")
        lines = "".join(f"{number}:{number}\n" for number in range(40))
        assert run_kctl("produce", "orders", "-K", ":", "-b", servers, stdin=lines).exit_code == 0
        for number in range(4):
            args = ("consume", "orders", "--exit", "--group", f"group-{number}", "-b", servers)
            assert run_kctl(*args).exit_code == 0
        yield cluster


def _has_topics(broker: str) -> bool:
    described = run_kctl("topics", "describe", "orders", "replicated", "-b", broker)
    return described.exit_code == 0


def controller_of(kafka: RealKafka) -> int:
    described = run_kctl("cluster", "describe", "-o", "json", "-b", kafka.bootstrap_servers)
    controller: int = described.json["controller_id"]
    return controller


def address(kafka: RealKafka, broker_id: int) -> str:
    return kafka.brokers[broker_id - 1]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""


@contextmanager
def paused(kafka: RealKafka, broker_id: int) -> Iterator[None]:
    """Stop the process of a broker with SIGSTOP."""
    config = os.fsencode(kafka.directory / f"server-{broker_id}.properties")
    found = Path("/proc").glob("[0-9]*/cmdline")
    [pid] = [int(path.parent.name) for path in found if config in _read(path).split(b"\0")]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def on(kafka: RealKafka, broker_id: int, *args: str, stdin: str | None = None) -> KctlResult:
    words = ("-b", address(kafka, broker_id), "--timeout", str(TIMEOUT_S))
    return run_kctl(*args, *words, stdin=stdin)


def test_hung_broker_is_named_and_the_rest_is_shown(kafka: RealKafka) -> None:
    controller = controller_of(kafka)
    victim = 3 - controller
    with paused(kafka, victim):
        for args in READING:
            started_s = time.monotonic()
            result = on(kafka, controller, *args)
            assert result.exit_code == 4, (args, result.stderr)
            assert f"broker {victim} ({address(kafka, victim)}) did not answer" in result.stderr
            assert "error:" not in result.stderr
            assert time.monotonic() - started_s < 6 * TIMEOUT_S
        rows = on(kafka, controller, "offsets", "orders", "-o", "json").json
        known = {row["partition"] for row in rows if row["offset"] is not None}
        assert known == ({0, 2} if controller == 1 else {1, 3})
        assert on(kafka, controller, "topics", "list").exit_code == 0


def test_change_on_a_hung_controller_may_have_been_made(kafka: RealKafka) -> None:
    controller = controller_of(kafka)
    with paused(kafka, controller):
        result = on(kafka, 3 - controller, "topics", "create", "late", "-p", "1")
        throttles = on(kafka, 3 - controller, "throttle", "list", "-o", "json")
        led = str(controller - 1)  # orders-0 is led by broker 1, orders-1 by broker 2
        sent = on(kafka, 3 - controller, "produce", "orders", "-p", led, stdin="a\n")
    assert (throttles.exit_code, throttles.json) == (4, []), throttles.stderr
    assert (sent.exit_code, "may have been written" in sent.stderr) == (4, True), sent.stderr
    assert result.exit_code == 4
    assert f"broker {controller} ({address(kafka, controller)})" in result.stderr
    assert "the change may have been made" in result.stderr
    wait_until(lambda: on(kafka, controller, "topics", "list").exit_code == 0, "it answers")


def test_topics_are_created_neither_by_typos_nor_on_unknown_brokers(kafka: RealKafka) -> None:
    assert "no such topic" in on(kafka, 1, "produce", "ordes", stdin="a\n").stderr
    ghost = on(kafka, 1, "topics", "create", "ghost", "--replica-assignment", "99")
    assert (ghost.exit_code, "no such broker: 99" in ghost.stderr) == (1, True)
    names = on(kafka, 1, "topics", "list", "-o", "name").output.split()
    assert not {"ordes", "ghost"} & set(names)


def test_protection_follows_the_cluster_id(
    kafka: RealKafka, tmp_path_factory: pytest.TempPathFactory
) -> None:
    env = {"KCTL_CONFIG": str(tmp_path_factory.mktemp("config") / "contexts.yaml")}
    prod = run_kctl("context", "set", "prod", "-b", kafka.brokers[0], "--protected", env=env)
    assert prod.exit_code == 0, prod.stderr
    words = ("topics", "delete", "orders", "--yes", "-b", kafka.brokers[1])
    result = run_kctl(*words, env=env)
    assert (result.exit_code, "'prod' is protected" in result.stderr) == (1, True)


def test_explained_partition_is_the_one_of_kafkas_producer(kafka: RealKafka) -> None:
    lines = "".join(f"{'k' * length}:v\n" for length in range(1, 20))
    words = ("produce", "orders", "-K", ":", "--explain", "-o", "json")
    explained = {row["key"]: row["partition"] for row in on(kafka, 1, *words, stdin=lines).json}
    tool = kafka.tool_with_input(
        "kafka.tools.ConsoleProducer",
        *("--bootstrap-server", kafka.bootstrap_servers, "--topic", "orders"),
        *("--property", "parse.key=true", "--property", "key.separator=:"),
        text=lines,
    )
    assert tool.returncode == 0, tool.stderr
    found = on(kafka, 1, "consume", "orders", "--exit", "-o", "jsonl", "--grep", "v:^v$").output
    records = [json.loads(line) for line in found.splitlines()]
    assert {record["key"]: record["partition"] for record in records} == explained


def test_newest_records_and_decoded_offsets(kafka: RealKafka) -> None:
    assert len(on(kafka, 1, "consume", "orders", "--last", "5").output.splitlines()) == 5
    lines = on(kafka, 1, "consume", "__consumer_offsets", "--exit", "-o", "jsonl").output
    keys = [json.loads(line)["key"] for line in lines.splitlines()]
    assert any("group-0" in str(key) and isinstance(key, dict) for key in keys)
