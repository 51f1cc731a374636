"""Loading a BrokerConfig: precedence, computed values, refused settings."""

import logging
from pathlib import Path

import pytest

from broker.config import BrokerConfig, ConfigError, Listener, load_config, parse_config

HOUR_MS = 3_600_000


def test_without_a_file_settings_have_kafkas_defaults() -> None:
    config = load_config(None, {})
    assert config == BrokerConfig()
    assert config.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert config.num_partitions == 1
    assert config.log_cleanup_policy == ("delete",)


def test_override_takes_precedence_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=3\nbroker.id=4\n")
    config = load_config(path, {"num.partitions": "5"})
    assert (config.num_partitions, config.broker_id, config.node_id) == (5, 4, 4)


def test_node_id_is_the_default_of_broker_id() -> None:
    assert parse_config({"node.id": "4"}).broker_id == 4


def test_each_unknown_key_is_logged_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    known = {"num.partitions": "2"}
    parse_config({"no.such.key": "1", **known})
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (
        logging.WARNING,
        "ignored unknown setting key=no.such.key",
    )


def test_config_is_immutable() -> None:
    with pytest.raises(AttributeError, match="num_partitions"):
        BrokerConfig().num_partitions = 2  # type: ignore[misc]


def test_config_by_keyword_equals_config_from_text() -> None:
    listeners = (Listener("PLAINTEXT", "::1", 9092), Listener("SSL", "", 0))
    by_keyword = BrokerConfig(
        listeners=listeners,
        log_cleanup_policy=("compact", "delete"),
        max_connections_per_ip_overrides=(("::1", 5), ("host", 6)),
        broker_id=1,
        node_id=1,
    )
    from_text = BrokerConfig.parse(
        {
            "listeners": "plaintext://[::1]:9092, SSL://:0",
            "log.cleanup.policy": "compact,delete",
            "max.connections.per.ip.overrides": "::1:5,host:6",
            "broker.id": "1",
        }
    )
    assert repr(by_keyword) == repr(from_text)
    with pytest.raises(TypeError, match="unknown setting: nonsense"):
        BrokerConfig(nonsense=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("which", ["send", "receive"])
def test_buffer_size_is_left_to_the_system_unless_it_is_set(which: str) -> None:
    def used_and_described(settings: dict[str, str]) -> tuple[int, int]:
        config = BrokerConfig.parse(settings)
        name = f"{which}_buffer_bytes"
        return getattr(config, name), getattr(config, f"socket_{name}")

    assert used_and_described({}) == (-1, 102_400)
    assert used_and_described({f"socket.{which}.buffer.bytes": "102400"}) == (102_400, 102_400)


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_finest_unit_of_retention_takes_precedence(
    given: dict[str, str], retention_ms: int
) -> None:
    assert parse_config(given).retention_ms == retention_ms


def test_computed_values() -> None:
    config = parse_config({"log.roll.hours": "1", "log.roll.jitter.hours": "2", "log.dir": "/a"})
    assert (config.roll_ms, config.roll_jitter_ms) == (HOUR_MS, 2 * HOUR_MS)
    assert config.log_directories == (Path("/a"),)
    assert config.flush_ms == 2**63 - 1
    assert config.zookeeper_connect_timeout_ms == 18_000
    config = parse_config(
        {
            "log.roll.ms": "5",
            "log.roll.jitter.ms": "6",
            "log.dirs": "/b, /c",
            "log.flush.scheduler.interval.ms": "7",
            "zookeeper.connection.timeout.ms": "8",
            "log.message.timestamp.difference.max.ms": "9",
            "log.message.timestamp.after.max.ms": "10",
        }
    )
    assert (config.roll_ms, config.roll_jitter_ms) == (5, 6)
    assert config.log_directories == (Path("/b"), Path("/c"))
    assert config.flush_ms == 7
    assert config.zookeeper_connect_timeout_ms == 8
    assert (config.timestamp_before_max_ms, config.timestamp_after_max_ms) == (9, 10)


def test_listeners_and_their_protocols() -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "inside://10.0.0.1:9092,OUTSIDE://:9093,CONTROL://:9094",
            "advertised.listeners": "INSIDE://a:9092,OUTSIDE://b:9093,CONTROL://c:9094",
            "listener.security.protocol.map": "inside:plaintext,OUTSIDE:SSL,CONTROL:PLAINTEXT",
            "inter.broker.listener.name": "inside",
        }
    )
    assert [listener.name for listener in config.listeners] == ["INSIDE", "OUTSIDE", "CONTROL"]
    assert config.all_advertised_listeners[1] == Listener("OUTSIDE", "b", 9093)
    assert config.inter_broker_listener == "INSIDE"
    assert config.security_protocol("OUTSIDE") == "SSL"


@pytest.mark.parametrize(
    ("key", "text", "wanted"),
    [
        ("num.partitions", "many", "Not a number of type INT"),
        ("num.partitions", "0", "Value must be at least 1"),
        ("log.cleaner.min.cleanable.ratio", "2", "Value must be no more than 1"),
        ("compression.type", "zip", "String must be one of: uncompressed, zstd, lz4"),
        ("inter.broker.protocol.version", "3.9-IV7", "is not a valid version"),
        ("group.consumer.migration.policy", "up", "String must be one of (case insensitive):"),
        ("remote.log.storage.manager.impl.prefix", "", "String must be non-empty"),
        ("remote.log.manager.copier.thread.pool.size", "0", "Value can be -1 or greater than 0"),
        ("listeners", "9092", "9092 is not NAME://host:port"),
        ("listeners", "PLAINTEXT://:70000", "is not between 0 and 65535"),
        ("listeners", "A://:1,a://:2", "Each listener must have a different name"),
        ("listener.security.protocol.map", "A:B", "allowed are PLAINTEXT, SSL,"),
        ("listener.security.protocol.map", "A", "A is not a pair"),
        ("max.connections.per.ip.overrides", "host:x", "x is not a number of connections"),
        ("max.connections.per.ip.overrides", "ho st:1", "ho st is not a host name"),
    ],
)
def test_invalid_value_is_reported_in_one_line(key: str, text: str, wanted: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_config({key: text})
    line = str(refusal.value)
    assert f"for configuration {key}: " in line
    assert wanted in line
    assert "\n" not in line


@pytest.mark.parametrize("version", ["3.9", "3.9.1", "3.7-IV4", "0.10.2", "0.9.0.1", "2.8-IV1"])
def test_releases_of_kafka_are_valid_versions(version: str) -> None:
    assert parse_config({"log.message.format.version": version}).log_message_format_version


CONTRADICTIONS: list[tuple[dict[str, str], str]] = [
    ({"controller.listener.names": "C"}, "must be empty when not running in KRaft mode"),
    ({"broker.id": "1", "node.id": "2"}, "node.id=2, broker.id=1: You must set `node.id`"),
    ({"broker.id": "1001"}, "not greater than reserved.broker.max.id"),
    ({"broker.id.generation.enable": "false"}, "broker.id must be greater than or equal to 0"),
    ({"log.roll.ms": "0"}, "log.roll.ms=0: log.roll.ms must be greater"),
    ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater"),
    ({"log.retention.minutes": "0"}, "log.retention.minutes=0"),
    ({"log.dirs": ""}, "At least one log directory"),
    ({"log.cleaner.threads": "200"}, "at least 1MB per cleaner thread"),
    ({"replica.socket.timeout.ms": "1"}, "replica.socket.timeout.ms should always"),
    ({"replica.lag.time.max.ms": "1"}, "replica.fetch.wait.max.ms should always"),
    ({"group.coordinator.rebalance.protocols": "consumer"}, "Disabling the 'classic'"),
    ({"group.coordinator.rebalance.protocols": "classic,consumer"}, "only supported in KRaft"),
    ({"offsets.commit.required.acks": "5"}, "offsets.topic.replication.factor"),
    ({"offsets.topic.compression.codec": "5"}, "0 to 4"),
    ({"inter.broker.protocol.version": "0.10.2"}, "must not be newer"),
    ({"queued.max.request.bytes": "5"}, "socket.request.max.bytes"),
    ({"max.connections.per.ip": "0"}, "can be set to zero only if"),
    ({"connections.max.idle.ms": "50"}, "connection.failed.authentication.delay.ms=100"),
    ({"group.share.heartbeat.interval.ms": "4999"}, "group.share.heartbeat.interval.ms must be"),
    ({"group.consumer.session.timeout.ms": "60001"}, "group.consumer.max.session.timeout.ms must"),
    (
        {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
        "Only one of",
    ),
    (
        {
            "listeners": "SASL_SSL://:1",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
        },
        "must be included in sasl.enabled.mechanisms",
    ),
    ({"listeners": "INSIDE://:1"}, "No security protocol defined for listener INSIDE"),
    ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "Each listener must have a different port"),
    ({"listeners": "PLAINTEXT://1.1.1.1:1,SSL://2.2.2.2:1"}, "a different port"),
    ({"advertised.listeners": "PLAINTEXT://:1,SSL://:2"}, "equal to or a subset"),
    (
        {"listeners": "SSL://:1"},
        "The valid options based on currently configured listeners are SSL",
    ),
    ({"listeners": "PLAINTEXT://0.0.0.0:1"}, "nonroutable meta-address 0.0.0.0"),
    ({"control.plane.listener.name": "SSL"}, "control.plane.listener.name must be a listener"),
    ({"control.plane.listener.name": "PLAINTEXT"}, "should have a different value"),
]


@pytest.mark.parametrize(("given", "line"), CONTRADICTIONS)
def test_contradicting_settings_are_refused(given: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_config(given)
    assert line in str(refusal.value)
    assert any(f"{key}={text}" in str(refusal.value) for key, text in given.items())


@pytest.mark.parametrize(
    "given",
    [
        {
            "listeners": "PLAINTEXT://127.0.0.1:1,INSIDE://[::1]:1",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
        },
        {
            "listeners": "PLAINTEXT://:0,INSIDE://:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
        },
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "host:1"},
        {"connections.max.idle.ms": "-1"},
        {"log.cleaner.threads": "0"},
        {"inter.broker.protocol.version": "0.10.2", "log.message.format.version": "0.9.0"},
    ],
)
def test_compatible_settings_are_accepted(given: dict[str, str]) -> None:
    assert parse_config(given).originals == given
