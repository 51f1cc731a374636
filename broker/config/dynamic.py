"""The effective settings: those of the file, and dynamic changes.

Precedence, highest first:

    settings of a topic                    /config/topics/<topic>
    settings of this broker                /config/brokers/<id>
    settings of all brokers                /config/brokers/<default>
    server.properties
    Kafka's defaults

Nothing here reads or writes the store: its watcher calls `apply`, and a handler that changes it
calls `validate_…` first. Subscribers are called after each change.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Final, Protocol

from broker.config.broker import BrokerConfig
from broker.config.checks import check_together
from broker.config.reconfiguration import check_dynamic, check_step, is_password, usable
from broker.config.support import check_dynamic_support, check_supported, ineffective
from broker.config.synonyms import override
from broker.config.topic import TopicConfig, topic_defaults, validate_topic_config
from broker.config.values import ConfigError

logger = logging.getLogger(__name__)

_NOT_CONFIGURED: Final = "Password encoder secret not configured"

CLUSTER_DEFAULT: Final = "<default>"
"""The entity name of the settings of all brokers."""


class EntityType(StrEnum):
    """The entities that can have dynamic settings, named as in the store."""

    TOPIC = "topics"
    BROKER = "brokers"


class ConfigStore(Protocol):
    """The store of dynamic settings: the znodes under /config."""

    async def read(self, entity_type: str, name: str) -> dict[str, str]:
        """The settings of one entity; empty if it has none."""
        ...

    async def write(self, entity_type: str, name: str, config: Mapping[str, str]) -> None:
        """Replace the settings of one entity and notify all brokers."""
        ...


class PasswordCodec(Protocol):
    """Encrypts the passwords in dynamic settings; see `security.password_encoder`."""

    def encode(self, password: str) -> str:
        """The text to store."""
        ...

    def decode(self, text: str) -> str:
        """The password; ConfigError if it cannot be decrypted."""
        ...


BrokerSubscriber = Callable[[BrokerConfig, BrokerConfig], None]
"""Called with the config before and after a change of broker settings."""
TopicSubscriber = Callable[[str, TopicConfig], None]
"""Called with a topic and its effective config."""


class DynamicConfig:
    """The effective settings of one broker and of all topics."""

    def __init__(self, static: BrokerConfig, broker_id: int) -> None:
        self.static = static
        self.broker_id = broker_id
        self.broker = static
        """The effective settings of this broker. A change replaces the whole object."""
        self.of_broker: Mapping[str, str] = {}
        """Dynamic settings of this broker."""
        self.of_cluster: Mapping[str, str] = {}
        """Dynamic settings of all brokers."""
        self._of_topics: dict[str, Mapping[str, str]] = {}
        """Overrides by topic. Invariant: no empty mapping."""
        self._topic_configs: dict[str, TopicConfig] = {}
        """Cache of effective topic settings; cleared when the broker's settings change."""
        self._default_topic_config = TopicConfig.parse({}, topic_defaults(static))
        self.passwords: PasswordCodec | None = None
        """Set if `password.encoder.secret` is: without it there are no dynamic passwords."""
        self.changing = asyncio.Lock()
        """Held from reading the store until the change is written and applied."""
        self._broker_subscribers: list[BrokerSubscriber] = []
        self._topic_subscribers: list[TopicSubscriber] = []
        self._validators: list[Callable[[BrokerConfig], None]] = []

    def topic(self, topic: str) -> TopicConfig:
        """The effective settings of a topic, which need not exist."""
        overrides = self._of_topics.get(topic)
        if overrides is None:
            return self._default_topic_config
        if topic not in self._topic_configs:
            self._topic_configs[topic] = self._parse_topic(topic, overrides)
        return self._topic_configs[topic]

    def of_topic(self, topic: str) -> Mapping[str, str]:
        """The overrides of a topic."""
        return self._of_topics.get(topic, {})

    def on_broker_change(self, subscriber: BrokerSubscriber) -> None:
        """Call `subscriber` after each change of the broker's settings.

        The effective settings of all topics may change with them.
        """
        self._broker_subscribers.append(subscriber)

    def on_topic_change(self, subscriber: TopicSubscriber) -> None:
        """Call `subscriber` after each change of a topic's overrides."""
        self._topic_subscribers.append(subscriber)

    def on_validation(self, validator: Callable[[BrokerConfig], None]) -> None:
        """Call `validator` before a change of the broker's settings; ConfigError refuses it."""
        self._validators.append(validator)

    def validate_topic(self, overrides: Mapping[str, str]) -> None:
        """Refuse invalid overrides of a topic; see `validate_topic_config`."""
        validate_topic_config(self.broker, overrides)

    def validate_broker(self, overrides: Mapping[str, str], *, per_broker: bool) -> None:
        """ConfigError for dynamic settings that this broker, or all brokers, cannot have."""
        check_dynamic(overrides, per_broker=per_broker)
        of_cluster = self.of_cluster if per_broker else overrides
        of_broker = overrides if per_broker else self.of_broker
        self._check(self._effective(of_cluster, of_broker))

    def _check(self, new: BrokerConfig) -> None:
        check_together(new)
        try:
            check_step(self.broker, new)
        except ConfigError as error:
            raise ConfigError(f"Invalid dynamic configuration: {error}") from error
        check_dynamic_support(self.broker, new)
        for validator in self._validators:
            validator(new)

    def apply(self, entity_type: EntityType, name: str, config: Mapping[str, str]) -> None:
        """Apply the stored settings of a topic, of this broker or of all brokers.

        Invalid settings are ignored and logged as an error: an older tool, or a manual change, may
        have stored them. Settings of other brokers are ignored.
        """
        if entity_type is EntityType.TOPIC:
            self._apply_topic(name, config)
        elif name == CLUSTER_DEFAULT:
            self._apply_broker(self._usable(name, config), self.of_broker)
        elif name == str(self.broker_id):
            self._apply_broker(self.of_cluster, self._usable(name, config))

    def _apply_topic(self, topic: str, config: Mapping[str, str]) -> None:
        self._topic_configs.pop(topic, None)
        if config:
            self._of_topics[topic] = dict(config)
        else:
            self._of_topics.pop(topic, None)
        effective = self.topic(topic)
        for subscriber in self._topic_subscribers:
            subscriber(topic, effective)

    def _apply_broker(self, of_cluster: Mapping[str, str], of_broker: Mapping[str, str]) -> None:
        new = self._effective(of_cluster, of_broker)
        try:
            check_together(new)
            check_supported(new)
        except ConfigError as error:
            logger.error("ignored stored settings reason=%s", error)
            return
        old, self.broker = self.broker, new
        self.of_cluster, self.of_broker = of_cluster, of_broker
        if new == old:
            return
        if keys := set(ineffective(new)) - set(ineffective(old)):
            logger.warning(
                "dynamic settings without effect on this broker: %s", ", ".join(sorted(keys))
            )
        self._topic_configs.clear()
        self._default_topic_config = TopicConfig.parse({}, topic_defaults(new))
        for subscriber in self._broker_subscribers:
            subscriber(old, new)

    def decoded(self, config: Mapping[str, str]) -> dict[str, str]:
        """Stored settings with their passwords decrypted, without those that cannot be."""
        found = {}
        for key, text in config.items():
            with suppress(ConfigError):
                found[key] = self._decode(text) if is_password(key) else text
        return found

    def encoded(self, config: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
        """Settings as they are stored, with encrypted passwords; unchanged ones stay as they are.

        Passwords that cannot be decrypted here are removed with any change, as in Kafka.
        ConfigError if a password is to be stored and `password.encoder.secret` is not set.
        """
        known = self.decoded({key: text for key, text in stored.items() if is_password(key)})
        written: dict[str, str] = {}
        if lost := sorted(key for key in stored if is_password(key) and key not in known):
            logger.warning("removing passwords that cannot be decrypted keys=%s", ",".join(lost))
        for key, text in config.items():
            if not is_password(key):
                written[key] = text
            elif known.get(key) == text:
                written[key] = stored[key]
            elif self.passwords is None:
                raise ConfigError(_NOT_CONFIGURED)
            else:
                written[key] = self.passwords.encode(text)
        return written

    def _decode(self, text: str) -> str:
        if self.passwords is None:
            raise ConfigError(_NOT_CONFIGURED)
        return self.passwords.decode(text)

    def _usable(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        decoded = self.decoded(config)
        kept, unusable = usable(decoded, per_broker=name != CLUSTER_DEFAULT)
        if unusable := sorted({*unusable, *(config.keys() - decoded.keys())}):
            logger.error(
                "ignored stored settings entity=brokers/%s keys=%s", name, ",".join(unusable)
            )
        return kept

    def _effective(
        self, of_cluster: Mapping[str, str], of_broker: Mapping[str, str]
    ) -> BrokerConfig:
        texts = dict(self.static.originals)
        override(texts, of_cluster)
        override(texts, of_broker)
        return BrokerConfig.parse(texts)

    def _parse_topic(self, topic: str, overrides: Mapping[str, str]) -> TopicConfig:
        defaults = topic_defaults(self.broker)
        try:
            return TopicConfig.parse(overrides, defaults)
        except ConfigError as error:
            logger.error("ignored stored settings entity=topics/%s reason=%s", topic, error)
            return TopicConfig.parse(_without_unusable(overrides), defaults)


def _without_unusable(overrides: Mapping[str, str]) -> dict[str, str]:
    kept = {}
    for key, text in overrides.items():
        try:
            TopicConfig.parse({key: text})
        except ConfigError:
            continue
        kept[key] = text
    return kept
