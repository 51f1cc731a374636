"""What each setting is declared to do, compared with what the code reads."""

import pytest

from broker.config import BrokerConfig, TopicConfig
from broker.config.broker import DynamicOnlySettings
from broker.config.definitions import Settings, Status
from broker.config.settings.authorizer import AuthorizerSettings
from broker.config.support import ineffective
from tests.docs.setting_reads import COMPUTED, attributes_read, computed_reads, keys_read

OBEYED_BY_CHECKS = {"broker.id.generation.enable"}
"""Obeyed within `broker/config`: without it a broker needs an id to start."""


def obeyed(cls: type[Settings]) -> set[str]:
    """The keys that are declared to be obeyed."""
    return {k for k, setting in cls.settings.items() if setting.effect.status is Status.OBEYED}


def test_obeyed_broker_settings_are_those_the_code_reads() -> None:
    read, _ = keys_read()
    assert obeyed(BrokerConfig) - OBEYED_BY_CHECKS == read


def test_obeyed_topic_settings_are_those_the_code_reads() -> None:
    _, read = keys_read()
    assert obeyed(TopicConfig) == read


def test_settings_without_a_file_apply() -> None:
    assert obeyed(DynamicOnlySettings) == DynamicOnlySettings.settings.keys()
    assert DynamicOnlySettings.attributes.keys() <= attributes_read()


def test_obeyed_settings_of_the_authorizer_are_those_the_code_reads() -> None:
    read = AuthorizerSettings.attributes.keys() & attributes_read()
    assert obeyed(AuthorizerSettings) == {AuthorizerSettings.attributes[name] for name in read}


def test_reads_by_computed_names_are_listed() -> None:
    assert computed_reads() == COMPUTED.keys()


@pytest.mark.parametrize(
    "cls", [BrokerConfig, TopicConfig, DynamicOnlySettings, AuthorizerSettings]
)
def test_setting_that_is_not_obeyed_has_a_reason(cls: type[Settings]) -> None:
    for key, setting in cls.settings.items():
        assert bool(setting.effect.reason) == (setting.effect.status is not Status.OBEYED), key


def test_fixed_setting_is_without_effect_only_if_it_is_not_the_default() -> None:
    assert ineffective(BrokerConfig.parse({"offsets.commit.required.acks": "-1"})) == []
    given = BrokerConfig.parse({"offsets.commit.required.acks": "1", "num.io.threads": "8"})
    assert ineffective(given) == ["num.io.threads", "offsets.commit.required.acks"]
