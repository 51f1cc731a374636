"""The defaults of all settings, compared with the output of kafka-configs on a real cluster."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from broker.config.description import ConfigSource
from broker.config.dynamic import EntityType
from tests.config.scenario import BROKER, TOPIC, describe
from tests.config.support import ConfigApis

TOOLS = Path(__file__).parents[1] / "golden" / "tools"
LINE = re.compile(r"  (?P<key>[^=]+)=(?P<value>.*) sensitive=(\w+) synonyms=\{(?P<synonyms>.*)\}")
SYNONYM = re.compile(r"([A-Z_]+):([^=]+)=(.*)")
STATIC_OF_THE_CLUSTER = "STATIC_BROKER_CONFIG"


def printed(name: str) -> dict[str, dict[str, Any]]:
    lines = (TOOLS / name).read_text().splitlines()
    matches = {m["key"]: m for line in lines if (m := LINE.fullmatch(line))}
    return {
        key: {"value": m["value"], "sensitive": m[3], "synonyms": _synonyms(m["synonyms"])}
        for key, m in matches.items()
    }


def _synonyms(text: str) -> list[tuple[str, ...]]:
    parts = re.split(r", (?=[A-Z_]+:)", text) if text else []
    return [m.groups() for part in parts if (m := SYNONYM.fullmatch(part))]


def static_settings() -> dict[str, str]:
    """The static settings of the recorded broker, from its descriptions; secrets have no value."""
    described = printed("42-configs-broker-all.txt")
    return {
        name: value
        for setting in described.values()
        for source, name, value in setting["synonyms"]
        if source == STATIC_OF_THE_CLUSTER
    }


def ours(apis: ConfigApis, kind: int, name: str) -> dict[str, dict[str, Any]]:
    answer = asyncio.run(apis.send(describe((kind, name, None))))
    return {
        config.name: {
            "value": str(config.value).replace("None", "null"),
            "sensitive": str(config.is_sensitive).lower(),
            "synonyms": [
                (_source(s.source), s.name, "null" if s.value is None else s.value)
                for s in config.synonyms
            ],
        }
        for config in answer.results[0].configs
    }


def _source(number: int) -> str:
    return ConfigSource(number).name


@pytest.fixture
def apis() -> ConfigApis:
    apis = ConfigApis(static_settings(), "orders")
    config = {"cleanup.policy": "compact", "retention.ms": "3600000", "segment.bytes": "1048576"}
    asyncio.run(apis.store.write("topics", "orders", config))
    apis.dynamic.apply(EntityType.TOPIC, "orders", config)
    return apis


def test_topic_settings_are_printed_as_kafka_prints_them(apis: ConfigApis) -> None:
    assert ours(apis, TOPIC, "orders") == printed("41-configs-describe-all.txt")


def test_overrides_of_a_topic_are_printed_as_kafka_prints_them(apis: ConfigApis) -> None:
    own = {
        key: setting
        for key, setting in ours(apis, TOPIC, "orders").items()
        if setting["synonyms"] and setting["synonyms"][0][0] == "DYNAMIC_TOPIC_CONFIG"
    }
    assert own == printed("40-configs-describe.txt")


def test_broker_settings_are_printed_as_kafka_prints_them(apis: ConfigApis) -> None:
    expected, found = printed("42-configs-broker-all.txt"), ours(apis, BROKER, "1")
    # The recording replaced the default, so that it contains no path of the machine.
    assert found.pop("log.dir")["value"] == "/tmp/kafka-logs"
    assert expected.pop("log.dir")["value"] == "/var/kafka-logs"
    assert found.keys() == expected.keys()
    for key, setting in expected.items():
        assert found[key] == setting, key
