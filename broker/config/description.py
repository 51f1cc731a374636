"""Descriptions of settings for DescribeConfigs: values, sources and synonyms.

The synonyms of a value are all its possible sources in order of precedence: the topic, the dynamic
settings of this broker, those of all brokers, the file, Kafka's default; and for each source every
key that sets the same value.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from broker.config.broker import BrokerConfig, DynamicOnlySettings
from broker.config.definitions import Setting
from broker.config.dynamic import DynamicConfig
from broker.config.reconfiguration import DYNAMIC_KEYS, setting_of
from broker.config.synonyms import broker_synonyms
from broker.config.topic import BROKER_KEYS, TopicConfig, topic_defaults
from broker.config.values import ConfigType


class ConfigSource(IntEnum):
    """The source of a value, numbered as in DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


class Synonym(NamedTuple):
    """A possible source of the value."""

    name: str
    value: str | None
    source: ConfigSource


class Description(NamedTuple):
    """The description of one setting. Secrets have no value."""

    name: str
    value: str | None
    type: ConfigType
    synonyms: list[Synonym]
    read_only: bool = False
    is_sensitive: bool = False
    documentation: str | None = None

    @property
    def source(self) -> ConfigSource:
        """The source of the value."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT_CONFIG


def describe_topic(
    dynamic: DynamicConfig, topic: str, own: Mapping[str, str] | None = None
) -> Iterator[Description]:
    """All settings of a topic; with `own`, of a topic with these overrides."""
    if own is None:
        own, config = dynamic.of_topic(topic), dynamic.topic(topic)
    else:
        config = TopicConfig.parse(own, topic_defaults(dynamic.broker))
    for key, setting in TopicConfig.settings.items():
        value = setting.text_of(getattr(config, key.replace(".", "_")))
        synonyms = [Synonym(key, value, ConfigSource.DYNAMIC_TOPIC_CONFIG)] if key in own else []
        if broker_key := BROKER_KEYS.get(key):
            synonyms += _synonyms(dynamic, broker_key, is_sensitive=False)
        documentation = TopicConfig.documentation().get(key)
        yield Description(key, value, setting.type, synonyms, documentation=documentation)
    for key in own.keys() - TopicConfig.settings.keys():
        synonym = Synonym(key, None, ConfigSource.DYNAMIC_TOPIC_CONFIG)
        yield Description(key, None, ConfigType.UNKNOWN, [synonym], is_sensitive=True)


def describe_broker(dynamic: DynamicConfig) -> Iterator[Description]:
    """All settings of this broker: those that are set, and all that are not internal."""
    originals = dynamic.broker.originals
    shown = {k for k, setting in BrokerConfig.settings.items() if not setting.internal}
    for key in sorted(shown | originals.keys()):
        yield _describe(dynamic, key, originals.get(key))


def describe_cluster_defaults(dynamic: DynamicConfig) -> Iterator[Description]:
    """The dynamic settings of all brokers, without those of this one."""
    wanted = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    for key, text in dynamic.of_cluster.items():
        described = _describe(dynamic, key, text)
        synonyms = [synonym for synonym in described.synonyms if synonym.source is wanted]
        yield described._replace(synonyms=synonyms)


def _describe(dynamic: DynamicConfig, key: str, text: str | None) -> Description:
    setting = setting_of(key)
    is_sensitive = setting is None or setting.is_sensitive  # an unknown setting may be a secret
    return Description(
        key,
        None if is_sensitive else _shown(setting, key, text),
        setting.type if setting else ConfigType.UNKNOWN,
        _synonyms(dynamic, key, is_sensitive=is_sensitive),
        key not in DYNAMIC_KEYS,
        is_sensitive,
        BrokerConfig.documentation().get(key) or DynamicOnlySettings.documentation().get(key),
    )


def _shown(setting: Setting | None, key: str, text: str | None) -> str | None:
    """A text as Kafka prints it. Unknown and dynamic-only settings are printed as given."""
    if text is None:
        return setting.default_text if setting else None
    return setting.shown(text) if setting and key in BrokerConfig.settings else text


def _synonyms(dynamic: DynamicConfig, key: str, *, is_sensitive: bool) -> list[Synonym]:
    """The possible sources of a broker setting, starting with `key` itself.

    Sources of higher precedence under another key are left out: they are not values of `key`.
    """
    names = broker_synonyms(key)
    found = [
        Synonym(name, None if is_sensitive else texts[name], source)
        for texts, source in _places(dynamic, names)
        for name in names
        if name in texts
    ]
    first = next((n for n, synonym in enumerate(found) if synonym.name == key), len(found))
    return found[first:]


def _places(
    dynamic: DynamicConfig, names: Iterable[str]
) -> Iterator[tuple[Mapping[str, str], ConfigSource]]:
    yield dynamic.of_broker, ConfigSource.DYNAMIC_BROKER_CONFIG
    yield dynamic.of_cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    yield dynamic.static.originals, ConfigSource.STATIC_BROKER_CONFIG
    known = {name: BrokerConfig.settings[name] for name in names if name in BrokerConfig.settings}
    defaults = {name: setting.default_text for name, setting in known.items()}
    yield {n: text for n, text in defaults.items() if text is not None}, ConfigSource.DEFAULT_CONFIG
