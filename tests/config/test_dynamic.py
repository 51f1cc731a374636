"""Precedence of dynamic settings, subscribers, and invalid stored settings."""

import logging

import pytest

from broker.config import BrokerConfig, ConfigError, TopicConfig, parse_config
from broker.config.broker import DynamicOnlySettings
from broker.config.dynamic import CLUSTER_DEFAULT, DynamicConfig, EntityType
from broker.errors import ApiError, ErrorCode

ME = 1


def dynamic(**static: str) -> DynamicConfig:
    return DynamicConfig(parse_config({k.replace("_", "."): v for k, v in static.items()}), ME)


def test_broker_overrides_cluster_and_cluster_overrides_file() -> None:
    configs = dynamic(log_cleaner_backoff_ms="1")
    assert configs.broker.log_cleaner_backoff_ms == 1
    configs.apply(EntityType.BROKER, CLUSTER_DEFAULT, {"log.cleaner.backoff.ms": "2"})
    assert configs.broker.log_cleaner_backoff_ms == 2
    configs.apply(EntityType.BROKER, str(ME), {"log.cleaner.backoff.ms": "3"})
    configs.apply(EntityType.BROKER, CLUSTER_DEFAULT, {"log.cleaner.backoff.ms": "4"})
    assert configs.broker.log_cleaner_backoff_ms == 3
    configs.apply(EntityType.BROKER, str(ME), {})
    configs.apply(EntityType.BROKER, CLUSTER_DEFAULT, {})
    assert configs.broker == configs.static


def test_dynamic_value_overrides_the_file_in_another_unit() -> None:
    configs = dynamic(log_retention_minutes="5")
    configs.apply(EntityType.BROKER, CLUSTER_DEFAULT, {"log.retention.ms": "7"})
    assert configs.broker.retention_ms == 7
    assert configs.broker.log_retention_minutes is None


def test_settings_of_another_broker_are_ignored() -> None:
    configs = dynamic()
    configs.apply(EntityType.BROKER, "2", {"log.cleaner.backoff.ms": "2"})
    assert configs.broker == configs.static


def test_topic_defaults_follow_changes_of_the_broker() -> None:
    configs = dynamic()
    configs.apply(EntityType.TOPIC, "t", {"flush.ms": "5"})
    assert (configs.topic("t").flush_ms, configs.topic("other").flush_ms) == (5, 2**63 - 1)
    configs.apply(
        EntityType.BROKER, str(ME), {"log.retention.ms": "9", "log.flush.interval.ms": "6"}
    )
    assert (configs.topic("t").retention_ms, configs.topic("t").flush_ms) == (9, 5)
    assert (configs.topic("other").retention_ms, configs.topic("other").flush_ms) == (9, 6)
    assert configs.of_topic("t") == {"flush.ms": "5"}
    configs.apply(EntityType.TOPIC, "t", {})
    assert configs.topic("t") is configs.topic("other")
    assert configs.of_topic("t") == {}


def test_subscribers_are_called_after_the_change() -> None:
    configs = dynamic()
    brokers: list[tuple[int, int]] = []
    topics: list[tuple[str, int]] = []

    def broker_changed(old: BrokerConfig, new: BrokerConfig) -> None:
        assert configs.broker is new
        brokers.append((old.log_cleaner_backoff_ms, new.log_cleaner_backoff_ms))

    def topic_changed(topic: str, config: TopicConfig) -> None:
        topics.append((topic, config.flush_ms))

    configs.on_broker_change(broker_changed)
    configs.on_topic_change(topic_changed)
    configs.apply(EntityType.BROKER, str(ME), {"log.cleaner.backoff.ms": "3"})
    configs.apply(EntityType.BROKER, str(ME), {"log.cleaner.backoff.ms": "3"})
    configs.apply(EntityType.TOPIC, "t", {"flush.ms": "5"})
    assert brokers == [(15_000, 3)]
    assert topics == [("t", 5)]


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        (str(ME), {"broker.id": "7"}),
        (str(ME), {"log.cleaner.backoff.ms": "abc"}),
        (str(ME), {"ssl.keystore.location": "/x"}),
        (str(ME), {"listener.name.x.ssl.key.password": "encrypted"}),
        (CLUSTER_DEFAULT, {"listeners": "PLAINTEXT://:1"}),
        (CLUSTER_DEFAULT, {"listener.name.x.ssl.keystore.type": "PEM"}),
    ],
)
def test_invalid_stored_setting_is_ignored(
    name: str, stored: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    configs = dynamic()
    configs.apply(EntityType.BROKER, name, {**stored, "log.flush.interval.ms": "5"})
    assert configs.broker.originals == {"log.flush.interval.ms": "5"}
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert f"entity=brokers/{name} keys={next(iter(stored))}" in record.getMessage()


def test_contradicting_stored_settings_are_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    configs = dynamic()
    configs.apply(EntityType.BROKER, str(ME), {"log.roll.ms": "0"})
    assert configs.broker == configs.static
    assert "log.roll.ms must be greater than or equal to 1" in caplog.text


def test_invalid_stored_topic_setting_is_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    configs = dynamic()
    configs.apply(EntityType.TOPIC, "t", {"flush.ms": "5", "retention.ms": "abc", "own": "x"})
    assert (configs.topic("t").flush_ms, configs.topic("t").retention_ms) == (5, 604_800_000)
    assert "entity=topics/t" in caplog.text


@pytest.mark.parametrize(
    ("key", "text", "accepted"),
    [
        ("num.io.threads", "4", True),
        ("num.io.threads", "16", True),
        ("num.io.threads", "3", False),
        ("num.io.threads", "17", False),
        ("num.network.threads", "7", False),
        ("log.cleaner.threads", "2", True),
        ("log.cleaner.threads", "3", False),
        ("log.cleaner.threads", "0", False),
        ("log.local.retention.ms", "604800000", True),
        ("log.local.retention.ms", "604800001", False),
        ("log.local.retention.ms", "-1", False),
        ("log.local.retention.bytes", "5", True),
        ("listener.security.protocol.map", "PLAINTEXT:SSL", False),
    ],
)
def test_dynamic_change_is_limited_per_step(key: str, text: str, accepted: bool) -> None:
    configs = dynamic()
    if accepted:
        configs.validate_broker({key: text}, per_broker=True)
        return
    with pytest.raises(ConfigError, match=r"^Invalid dynamic configuration: "):
        configs.validate_broker({key: text}, per_broker=True)


def test_unchanged_invalid_setting_does_not_block_other_changes() -> None:
    configs = dynamic(log_cleaner_threads="0", log_retention_ms="5", log_local_retention_ms="6")
    configs.validate_broker({"log.cleaner.backoff.ms": "1"}, per_broker=True)


def test_change_is_checked_together_with_other_effective_settings() -> None:
    configs = dynamic()
    configs.apply(EntityType.BROKER, CLUSTER_DEFAULT, {"log.retention.ms": "1000"})
    with pytest.raises(ConfigError, match=r"log\.local\.retention\.ms"):
        configs.validate_broker({"log.local.retention.ms": "2000"}, per_broker=True)
    configs.apply(EntityType.BROKER, str(ME), {"log.local.retention.ms": "500"})
    with pytest.raises(ConfigError, match=r"log\.local\.retention\.ms"):
        configs.validate_broker({"log.retention.ms": "400"}, per_broker=False)


def test_contradicting_topic_settings_return_invalid_config() -> None:
    with pytest.raises(ApiError, match="conflict topic config setting") as refusal:
        dynamic().validate_topic({"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"})
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


def test_topic_with_remote_storage_is_refused() -> None:
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled"):
        dynamic().validate_topic({"remote.storage.enable": "true"})


def test_throttled_rates_are_dynamic_only() -> None:
    assert not DynamicOnlySettings.settings.keys() & BrokerConfig.settings.keys()
    configs = dynamic()
    configs.apply(EntityType.BROKER, str(ME), {"leader.replication.throttled.rate": "5"})
    assert DynamicOnlySettings.parse(configs.of_broker).leader_replication_throttled_rate == 5
