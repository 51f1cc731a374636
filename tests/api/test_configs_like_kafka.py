"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs answer as Apache Kafka 3.9.1 did.

Value by value, type by type, source by source, synonym by synonym, and every refusal in its words.
"""

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from tests.config.record import GOLDEN, answers
from tests.config.scenario import EVERYTHING, STATIC, STEPS, T, play
from tests.config.support import ConfigApis
from tests.support.real_kafka import RealKafka


def golden(name: str) -> list[Any]:
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture(autouse=True)
def same_root_level() -> Any:
    before = logging.root.level
    yield
    logging.root.setLevel(before)


def in_our_words(answer: Any) -> Any:
    """Kafka's answer without the name of a Java class, which is a slip of its own."""
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
