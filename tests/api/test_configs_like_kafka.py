"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs answer as Apache Kafka 3.9.1 did.

Values, types, sources, synonyms and error messages are compared.
"""

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from broker.protocol.messages.describe_configs import DescribeConfigsRequest
from tests.config.record import GOLDEN, ask
from tests.config.scenario import (
    BROKER,
    EVERYTHING,
    ME,
    SET,
    STATIC,
    STEPS,
    TOPIC,
    T,
    describe,
    incremental,
    legacy,
    plain,
    play,
)
from tests.config.support import ConfigApis
from tests.support.real_kafka import RealKafka


def golden(name: str) -> list[Any]:
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture(autouse=True)
def same_root_level() -> Any:
    before = logging.root.level
    yield
    logging.root.setLevel(before)


RECEIVED_ITSELF = ("Expected 1, but received 1", "Expected 1, but received 77")
"""Kafka's message has its own id where the received one belongs; ours has the received one."""


def in_our_words(answer: Any) -> Any:
    """Kafka's response without the name of a Java class, which it contains by mistake."""
    answer = json.loads(json.dumps(answer).replace(*RECEIVED_ITSELF))
    words = "Invalid dynamic configuration"
    slip = rf"Invalid value [\w.]+ConfigException: (.*) for configuration {words}"
    return json.loads(re.sub(slip, rf"{words}: \1", json.dumps(answer)))


def test_every_answer_of_the_scenario_is_kafkas() -> None:
    ours = asyncio.run(play(ConfigApis(STATIC, T).send))
    expected = golden("scenario")
    assert len(ours) == len(expected)
    for step, answer, of_kafka in zip(STEPS, ours, expected, strict=True):
        assert answer == in_our_words(of_kafka), step


def test_every_broker_setting_is_described_as_kafka_does() -> None:
    (ours,) = asyncio.run(play(ConfigApis(STATIC).send, [EVERYTHING]))
    (expected,) = golden("broker")
    assert ours[0]["configs"].keys() == expected[0]["configs"].keys()
    for key, of_kafka in expected[0]["configs"].items():
        assert ours[0]["configs"][key] == of_kafka, key


@pytest.mark.kafka
def test_real_kafka_still_answers_as_recorded(real_kafka: RealKafka) -> None:
    host, _, port = real_kafka.brokers[0].rpartition(":")
    recorded = golden("scenario")
    scenario, (everything,) = asyncio.run(ask(host, int(port), recorded))
    for step, answer, before in zip(STEPS, scenario, recorded, strict=True):
        assert answer == before, step
    (expected,) = golden("broker")
    for key in ("listeners", "log.dirs", "zookeeper.connect"):  # differ from run to run
        del everything[0]["configs"][key], expected[0]["configs"][key]
    assert everything == expected


def test_versions_without_sources_or_types_leave_them_out() -> None:
    request = describe((BROKER, ME, ["num.partitions"]), synonyms=False)
    oldest = asyncio.run(ConfigApis(STATIC).send(request, 0)).results[0].configs[0]
    assert (oldest.name, oldest.value, oldest.read_only) == ("num.partitions", "1", True)
    assert oldest.config_source == -1
    newer = asyncio.run(ConfigApis(STATIC).send(request, 2)).results[0].configs[0]
    assert (newer.config_source, newer.config_type) == (5, 0)


def test_documentation_is_given_when_asked_for() -> None:
    resources = describe((BROKER, ME, None), (TOPIC, T, None)).resources
    request = DescribeConfigsRequest(resources=resources, include_documentation=True)
    answer = asyncio.run(ConfigApis(STATIC, T).send(request))
    sentences = [config.documentation for r in answer.results for config in r.configs]
    assert len(sentences) > 340
    assert all(sentence and sentence.endswith(".") for sentence in sentences)


def test_alter_configs_names_each_resource_once() -> None:
    twice = legacy((TOPIC, T, []), (TOPIC, T, []))  # Apache Kafka never answers this one
    answer = plain(asyncio.run(ConfigApis(STATIC, T).send(twice)))
    assert answer == [[TOPIC, T, 42, "Each resource must appear at most once."]] * 2


def test_changes_at_the_same_time_lose_nothing() -> None:
    apis = ConfigApis(STATIC, T)
    keys = ["retention.ms", "segment.ms", "flush.ms", "max.message.bytes"]

    async def change_all() -> None:
        requests = (incremental((TOPIC, T, [(key, SET, "100")])) for key in keys)
        await asyncio.gather(*map(apis.send, requests))

    asyncio.run(change_all())
    assert apis.store.configs["topics", T] == dict.fromkeys(keys, "100")


def test_stored_password_that_cannot_be_decrypted_is_removed_by_a_change() -> None:
    """Kafka 3.9's incrementalAlterConfigs writes back what fromPersistentProps could decode."""
    apis = ConfigApis(STATIC)
    apis.store.configs["brokers", ME] = {"listener.name.x.ssl.key.password": "encrypted"}
    asyncio.run(apis.send(incremental((BROKER, ME, [("log.cleaner.backoff.ms", SET, "1")]))))
    assert apis.store.configs["brokers", ME] == {"log.cleaner.backoff.ms": "1"}
