"""Requirements on combinations of settings, checked at start and before a dynamic change.

The messages are Kafka's; clients see them when a dynamic change is refused. At start they are
preceded by the keys and values that they are about.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from broker.config.broker import BrokerConfig
from broker.config.listeners import Listener
from broker.config.units import MIB
from broker.config.values import ConfigError


class RequirementFailed(ConfigError):
    """Settings that are valid individually but not together.

    `sentence` is Kafka's message; the text of the error has the keys and values before it.
    """

    def __init__(self, config: BrokerConfig, keys: tuple[str, ...], sentence: str) -> None:
        shown = [f"{key}={text}" for key in keys if (text := _shown(config, key)) is not None]
        super().__init__(f"{', '.join(shown)}: {sentence}")
        self.sentence = sentence


def _shown(config: BrokerConfig, key: str) -> str | None:
    """The text of a setting for a message; None if it is null. Secrets are hidden."""
    setting = config.settings[key]
    text = config.originals.get(key, setting.default_text)
    return "[hidden]" if text is not None and setting.is_sensitive else text


def check_together(config: BrokerConfig) -> None:
    """RequirementFailed for the first requirement that does not hold."""
    for requirement in _REQUIREMENTS:
        if not requirement.holds(config):
            raise RequirementFailed(config, requirement.keys, requirement.sentence)
    for lower, upper in _ORDERED:
        if _value(config, lower) > _value(config, upper):
            sentence = f"{upper} must be greater than or equal to {lower}"
            raise RequirementFailed(config, (lower, upper), sentence)
    for keys, sentence in _listener_problems(config):
        raise RequirementFailed(config, keys, sentence)


def _value(config: BrokerConfig, key: str) -> int:
    return int(getattr(config, key.replace(".", "_")))


class _Requirement(NamedTuple):
    keys: tuple[str, ...]
    holds: Callable[[BrokerConfig], bool]
    sentence: str


_ZSTD: Final = 4  # the highest codec number

_REQUIREMENTS: Final = (
    _Requirement(
        ("controller.listener.names",),
        lambda c: not c.controller_listener_names,
        "controller.listener.names must be empty when not running in KRaft mode",
    ),
    _Requirement(
        ("node.id", "broker.id"),
        lambda c: c.node_id == c.broker_id,
        "You must set `node.id` to the same value as `broker.id`.",
    ),
    _Requirement(
        ("broker.id", "reserved.broker.max.id"),
        lambda c: (
            not c.broker_id_generation_enable or -1 <= c.broker_id <= c.reserved_broker_max_id
        ),
        "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id",
    ),
    _Requirement(
        ("broker.id", "broker.id.generation.enable"),
        lambda c: c.broker_id_generation_enable or c.broker_id >= 0,
        "broker.id must be greater than or equal to 0",
    ),
    _Requirement(
        ("log.roll.ms",),
        lambda c: c.roll_ms >= 1,
        "log.roll.ms must be greater than or equal to 1",
    ),
    _Requirement(
        ("log.roll.jitter.ms",),
        lambda c: c.roll_jitter_ms >= 0,
        "log.roll.jitter.ms must be greater than or equal to 0",
    ),
    _Requirement(
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        lambda c: c.retention_ms >= 1 or c.retention_ms == -1,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    ),
    _Requirement(
        ("log.dirs", "log.dir"),
        lambda c: bool(c.log_directories),
        "At least one log directory must be defined via log.dirs or log.dir.",
    ),
    _Requirement(
        ("log.cleaner.dedupe.buffer.size", "log.cleaner.threads"),
        lambda c: (
            c.log_cleaner_threads == 0
            or c.log_cleaner_dedupe_buffer_size // c.log_cleaner_threads > MIB
        ),
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    ),
    _Requirement(
        ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
        lambda c: c.replica_fetch_wait_max_ms <= c.replica_socket_timeout_ms,
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms "
        "to prevent unnecessary socket timeouts",
    ),
    _Requirement(
        ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
        lambda c: c.replica_fetch_wait_max_ms <= c.replica_lag_time_max_ms,
        "replica.fetch.wait.max.ms should always be less than or equal to "
        "replica.lag.time.max.ms to prevent frequent changes in ISR",
    ),
    _Requirement(
        ("group.coordinator.rebalance.protocols",),
        lambda c: "classic" in c.group_coordinator_rebalance_protocols,
        "Disabling the 'classic' protocol is not supported.",
    ),
    _Requirement(
        ("group.coordinator.rebalance.protocols",),
        lambda c: "consumer" not in c.group_coordinator_rebalance_protocols,
        "The new 'consumer' rebalance protocol is only supported in KRaft cluster.",
    ),
    _Requirement(
        ("offsets.commit.required.acks", "offsets.topic.replication.factor"),
        lambda c: -1 <= c.offsets_commit_required_acks <= c.offsets_topic_replication_factor,
        "offsets.commit.required.acks must be greater or equal -1 and less or equal to "
        "offsets.topic.replication.factor",
    ),
    _Requirement(
        ("offsets.topic.compression.codec",),
        lambda c: 0 <= c.offsets_topic_compression_codec <= _ZSTD,
        "offsets.topic.compression.codec must be the number of a codec, 0 to 4",
    ),
    _Requirement(
        ("log.message.format.version", "inter.broker.protocol.version"),
        lambda c: (
            _record_version(c.log_message_format_version)
            <= _record_version(c.inter_broker_protocol_version)
        ),
        "log.message.format.version must not be newer than inter.broker.protocol.version",
    ),
    _Requirement(
        ("queued.max.request.bytes", "socket.request.max.bytes"),
        lambda c: (
            c.queued_max_request_bytes <= 0
            or c.queued_max_request_bytes >= c.socket_request_max_bytes
        ),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    ),
    _Requirement(
        ("max.connections.per.ip", "max.connections.per.ip.overrides"),
        lambda c: c.max_connections_per_ip > 0 or bool(c.max_connections_per_ip_overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
        "property is set.",
    ),
    _Requirement(
        ("connection.failed.authentication.delay.ms", "connections.max.idle.ms"),
        lambda c: (
            c.connections_max_idle_ms < 0
            or c.connection_failed_authentication_delay_ms < c.connections_max_idle_ms
        ),
        "connection.failed.authentication.delay.ms should always be less than "
        "connections.max.idle.ms to prevent failed authentication responses from timing out",
    ),
    _Requirement(
        ("inter.broker.listener.name", "security.inter.broker.protocol"),
        lambda c: (
            not (c.inter_broker_listener_name and "security.inter.broker.protocol" in c.originals)
        ),
        "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
    ),
    _Requirement(
        ("sasl.mechanism.inter.broker.protocol", "sasl.enabled.mechanisms"),
        lambda c: (
            not (c.security_protocol(c.inter_broker_listener) or "").startswith("SASL")
            or c.sasl_mechanism_inter_broker_protocol in c.sasl_enabled_mechanisms
        ),
        "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms "
        "when SASL is used for inter-broker communication",
    ),
)


def _limits(group: str, name: str) -> Iterator[tuple[str, str]]:
    low, high = f"{group}.min.{name}", f"{group}.max.{name}"
    yield from ((low, high), (low, f"{group}.{name}"), (f"{group}.{name}", high))


_ORDERED: Final = tuple(
    pair
    for group in ("group.consumer", "group.share")
    for name in ("heartbeat.interval.ms", "session.timeout.ms")
    for pair in _limits(group, name)
) + tuple(_limits("group.share", "record.lock.duration.ms"))
"""Pairs of keys; the second value must not be lower than the first."""


def _record_version(version: str) -> int:
    """The message format of a release: 0 before 0.10, 1 before 0.11, 2 since then."""
    if version.startswith(("0.8", "0.9")):
        return 0
    return 1 if version.startswith("0.10") else 2


def _listener_problems(config: BrokerConfig) -> Iterator[tuple[tuple[str, ...], str]]:
    """Problems of the listeners: keys and message."""
    listening = {listener.name for listener in config.listeners}
    advertised = [listener.name for listener in config.all_advertised_listeners]
    names = ",".join(advertised)
    for listener in (*config.listeners, *config.all_advertised_listeners):
        if config.security_protocol(listener.name) is None:
            yield (
                ("listeners", "listener.security.protocol.map"),
                f"No security protocol defined for listener {listener.name}",
            )
    if _ports_collide(config.listeners):
        yield ("listeners",), "Each listener must have a different port"
    if not set(advertised) <= listening:
        yield (
            ("advertised.listeners", "listeners"),
            "advertised.listeners listener names must be equal to or a subset of the ones "
            f"defined in listeners. Found {names}. The valid options based on the current "
            f"configuration are {','.join(sorted(listening))}",
        )
    if config.inter_broker_listener not in advertised:
        yield (
            ("inter.broker.listener.name", "security.inter.broker.protocol", "listeners"),
            "inter.broker.listener.name must be a listener name defined in "
            "advertised.listeners. The valid options based on currently configured listeners "
            f"are {names}",
        )
    if any(listener.host == "0.0.0.0" for listener in config.all_advertised_listeners):  # noqa: S104
        yield (
            ("advertised.listeners", "listeners"),
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
            "Use a routable IP address.",
        )
    if name := config.control_plane_listener_name:
        yield from _control_plane_problems(config, name.upper(), advertised)


def _control_plane_problems(
    config: BrokerConfig, name: str, advertised: list[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    if name not in advertised:
        yield (
            ("control.plane.listener.name", "advertised.listeners"),
            "control.plane.listener.name must be a listener name defined in "
            "advertised.listeners. The valid options based on currently configured listeners "
            f"are {','.join(advertised)}",
        )
    if name == config.inter_broker_listener:
        yield (
            ("control.plane.listener.name", "inter.broker.listener.name"),
            "control.plane.listener.name, when defined, should have a different value from the "
            f"inter broker listener name. Currently they both have the value {name}",
        )


def _ports_collide(listeners: tuple[Listener, ...]) -> bool:
    """Two listeners can share a port if one is IPv4 and one IPv6; port 0 is any free port."""
    hosts: dict[int, list[str]] = {}
    for listener in listeners:
        hosts.setdefault(listener.port, []).append(listener.host)
    shared = [sorted(map(_family, on_port)) for port, on_port in hosts.items() if port]
    return any(len(families) > 1 and families != ["IPv4", "IPv6"] for families in shared)


def _family(host: str) -> str:
    if ":" in host:
        return "IPv6"
    return "IPv4" if host.replace(".", "").isdigit() else "any"
