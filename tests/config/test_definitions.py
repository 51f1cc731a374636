import subprocess
import sys

import pytest

from broker.config import BrokerConfig, TopicConfig
from broker.config.broker import DynamicOnlySettings
from broker.config.definitions import Settings, integer
from broker.config.reconfiguration import DYNAMIC_KEYS
from broker.config.topic import BROKER_KEYS, topic_defaults
from broker.config.values import ConfigType, parse_value

CLASSES = (BrokerConfig, TopicConfig, DynamicOnlySettings)


def attribute(key: str) -> str:
    return "zookeeper_client_cnxn_socket" if "Cnxn" in key else key.replace(".", "_")


@pytest.mark.parametrize("cls", CLASSES)
def test_attribute_is_the_key_with_underscores(cls: type[Settings]) -> None:
    config = cls()
    for key, setting in cls.settings.items():
        assert getattr(config, attribute(key)) == setting.default, key


@pytest.mark.parametrize("cls", CLASSES)
def test_every_setting_has_documentation(cls: type[Settings]) -> None:
    assert cls.documentation().keys() == cls.settings.keys()
    for key, sentence in cls.documentation().items():
        assert sentence[0].isupper(), key
        assert sentence.endswith("."), key


@pytest.mark.parametrize("cls", CLASSES)
def test_default_round_trips_through_its_text(cls: type[Settings]) -> None:
    for key, setting in cls.settings.items():
        text = setting.default_text
        if text is not None:
            assert setting.parse(text) == setting.default, key
            assert setting.shown(text) == text, key


def test_topic_settings_default_to_broker_settings_of_the_same_type() -> None:
    for key, broker_key in BROKER_KEYS.items():
        topic, broker = TopicConfig.settings[key], BrokerConfig.settings[broker_key]
        assert topic.type is broker.type, key
    assert TopicConfig.parse({}, topic_defaults(BrokerConfig())) == TopicConfig()


def test_broker_defaults_of_topics_are_dynamic() -> None:
    assert set(BROKER_KEYS.values()) - {"log.message.format.version"} <= DYNAMIC_KEYS


def test_only_secrets_are_sensitive() -> None:
    sensitive = {key for key, setting in BrokerConfig.settings.items() if setting.is_sensitive}
    assert len(sensitive) == 15
    assert all(
        key.endswith(
            ("password", "key", "secret", "token", "chain", "certificates", "jaas.config", "digest")
        )
        for key in sensitive
    )


def test_settings_of_a_class_include_those_of_its_bases() -> None:
    class Base(Settings):
        first: int = integer("the.first", default=1)
        """One."""

    class Both(Base):
        second: int = integer("the.second", default=2)
        """Two."""

    both = Both.parse({"the.second": "3"})
    assert (both.first, both.second) == (1, 3)
    assert list(Both.settings) == ["the.first", "the.second"]
    assert both != Both()
    assert repr(both) == "Both(second=3)"


def test_importing_settings_imports_no_slow_modules() -> None:
    code = "import sys, broker.config; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"asyncio", "typing_extensions", "inspect"} & set(loaded.stdout.split())


def test_printed_number_parses_to_the_same_number() -> None:
    setting = BrokerConfig.settings["log.cleaner.io.max.bytes.per.second"]
    assert setting.shown(" 1e9 ") == "1.0E9"
    assert parse_value("key", "1.0E9", ConfigType.DOUBLE) == 1e9
