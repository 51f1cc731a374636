"""Configs changed with requests take effect, survive a restart, and are described."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.config.scenario import BROKER, SET, TOPIC, describe, incremental
from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import java_command


def ask(broker: RunningBroker, question: Callable[[BrokerConnection], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        connection = await open_connection(Node(-1, host, int(port)), "test", timeout_s=10)
        try:
            return await question(connection)
        finally:
            connection.close()

    return asyncio.run(connected())


def create_topic(name: str, **configs: str) -> CreateTopicsRequest:
    wanted = [CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=wanted)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def value(answer: Any, key: str) -> tuple[str, int]:
    (config,) = [c for result in answer.results for c in result.configs if c.name == key]
    return config.value, config.config_source


def test_change_is_still_there_after_a_restart(tmp_path: Path) -> None:
    async def change(connection: BrokerConnection) -> Any:
        await connection.send(create_topic("kept", retention_ms="5000"))
        answer = await connection.send(
            incremental(
                (TOPIC, "kept", [("segment.ms", SET, "6000")]),
                (BROKER, "", [("log.cleaner.backoff.ms", SET, "7")]),
                (BROKER, "1", [("log.flush.interval.ms", SET, "8")]),
            )
        )
        return [response.error_code for response in answer.responses]

    async def look(connection: BrokerConnection) -> Any:
        return await connection.send(describe((TOPIC, "kept", None), (BROKER, "1", None)))

    with running_broker(tmp_path, broker_id=1) as broker:
        assert ask(broker, change) == [0, 0, 0]
    with running_broker(tmp_path, broker_id=1) as broker:
        answer = ask(broker, look)
    assert value(answer, "retention.ms") == ("5000", 1)
    assert value(answer, "segment.ms") == ("6000", 1)
    assert value(answer, "flush.ms") == ("8", 2)
    assert value(answer, "log.cleaner.backoff.ms") == ("7", 3)
    assert value(answer, "log.flush.interval.ms") == ("8", 2)


def test_new_topic_is_answered_with_its_settings(shared_broker: RunningBroker) -> None:
    request = create_topic("configured", cleanup_policy="compact")
    answer = ask(shared_broker, lambda connection: connection.send(request))
    configs = {c.name: (c.value, c.config_source) for c in answer.topics[0].configs}
    assert len(configs) == 36
    assert configs["cleanup.policy"] == ("compact", 1)
    assert configs["segment.bytes"] == ("1073741824", 5)


def test_bad_value_ends_the_start_with_one_line() -> None:
    command = [sys.executable, "-m", "broker", "--override=num.partitions=none"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert ended.returncode == 1
    assert ended.stderr == (
        "kctl-broker: Invalid value none for configuration num.partitions: "
        "Not a number of type INT\n"
    )


@pytest.mark.kafka
def test_kafkas_own_tool_changes_and_describes_our_settings(shared_broker: RunningBroker) -> None:
    ask(shared_broker, lambda connection: connection.send(create_topic("tool")))

    def configs(*args: str) -> str:
        bootstrap = ["--bootstrap-server", shared_broker.bootstrap_servers]
        command = java_command("kafka.admin.ConfigCommand", *bootstrap, *args)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    topic = ["--entity-type", "topics", "--entity-name", "tool"]
    added = configs(*topic, "--alter", "--add-config", "retention.ms=1000,cleanup.policy=compact")
    assert added == "Completed updating config for topic tool.\n"
    assert configs(*topic, "--describe") == (
        "Dynamic configs for topic tool are:\n"
        "  cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy="
        "compact, DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}\n"
    )
    brokers = ["--entity-type", "brokers", "--entity-default"]
    configs(*brokers, "--alter", "--add-config", "log.cleaner.backoff.ms=14000")
    assert "log.cleaner.backoff.ms=14000 sensitive=false" in configs(*brokers, "--describe")
    configs(*topic, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in configs(*topic, "--describe")
