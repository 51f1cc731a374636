"""server.properties → a typed BrokerConfig, under Kafka's own keys, with Kafka's defaults.

A setting is declared once, as a field: its key, its default and what is allowed. An unknown key
is a warning (Kafka's files have many that this broker has no use for), a bad value is a ConfigError
that names key, value and what is allowed.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

logger = logging.getLogger(__name__)


class ConfigError(ValueError):
    """A setting that cannot be used; the text is one line for the person who wrote the file."""


class Listener(NamedTuple):
    """Where to listen, or where others find us: `PLAINTEXT://host:9092`."""

    name: str
    host: str  # empty: all interfaces
    port: int  # 0: any free one

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def _integer(text: str) -> int:
    return int(text.strip())


def _at_least(lowest: int) -> Callable[[int], str | None]:
    return lambda value: None if value >= lowest else f"must be at least {lowest}"


def _listeners(text: str) -> tuple[Listener, ...]:
    return tuple(_listener(part.strip()) for part in text.split(",") if part.strip())


def _listener(text: str) -> Listener:
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not (separator and colon and name and port.isdigit()):
        raise ValueError("wanted is NAME://host:port, e.g. PLAINTEXT://0.0.0.0:9092")
    return Listener(name.upper(), host.removeprefix("[").removesuffix("]"), int(port))


def _per_ip(text: str) -> tuple[tuple[str, int], ...]:
    pairs = (part.rpartition(":") for part in text.split(",") if part.strip())
    return tuple((host.strip(), int(limit)) for host, _, limit in pairs)


class Setting(NamedTuple):
    """How one key is read and checked."""

    key: str
    parse: Callable[[str], Any]
    problem: Callable[[Any], str | None]


def setting(
    key: str,
    default: Any,
    parse: Callable[[str], Any] = _integer,
    problem: Callable[[Any], str | None] = lambda value: None,
) -> Any:
    """Declare a setting; `problem` tells what is wrong with a value, or None."""
    return field(default=default, metadata={"setting": Setting(key, parse, problem)})


_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """What a broker was told."""

    broker_id: int = setting("broker.id", -1, problem=_at_least(-1))
    listeners: tuple[Listener, ...] = setting(
        "listeners", (Listener("PLAINTEXT", "", 9092),), _listeners
    )
    advertised_listeners: tuple[Listener, ...] = setting("advertised.listeners", (), _listeners)
    broker_rack: str | None = setting("broker.rack", None, str)
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes", 100 * 1024 * 1024, problem=_at_least(1)
    )
    socket_listen_backlog_size: int = setting(
        "socket.listen.backlog.size", 50, problem=_at_least(1)
    )
    connections_max_idle_ms: int = setting("connections.max.idle.ms", 10 * 60 * 1000)
    max_connections: int = setting("max.connections", _INT_MAX, problem=_at_least(0))
    max_connections_per_ip: int = setting("max.connections.per.ip", _INT_MAX, problem=_at_least(0))
    max_connections_per_ip_overrides: tuple[tuple[str, int], ...] = setting(
        "max.connections.per.ip.overrides", (), _per_ip
    )


def load_config(path: Path | None, overrides: Mapping[str, str]) -> BrokerConfig:
    """Read a server.properties (None: only defaults), then apply `overrides`."""
    properties = read_properties(path) if path else {}
    return parse_config(properties | dict(overrides))


def parse_config(properties: Mapping[str, str]) -> BrokerConfig:
    """Typed settings from raw ones; warns of unknown keys, refuses bad values."""
    known = {f.metadata["setting"].key: f for f in fields(BrokerConfig)}
    values: dict[str, Any] = {}
    for key, text in properties.items():
        if key in known:
            values[known[key].name] = _parse(known[key].metadata["setting"], text)
        else:
            logger.warning("unknown setting is ignored key=%s", key)
    return BrokerConfig(**values)


def _parse(rule: Setting, text: str) -> Any:
    try:
        value = rule.parse(text)
    except ValueError as error:
        raise ConfigError(f"{rule.key}={text}: {_reason(error)}") from error
    if problem := rule.problem(value):
        raise ConfigError(f"{rule.key}={text}: {problem}")
    return value


def _reason(error: ValueError) -> str:
    return "a whole number is wanted" if "int()" in str(error) else str(error)


def read_properties(path: Path) -> dict[str, str]:
    """Java's .properties format as Kafka's files use it: `key=value`, `#`, lines that go on."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    joined = text.replace("\\\r\n", "").replace("\\\n", "")
    lines = (line.strip() for line in joined.splitlines())
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {key.strip(): value.strip() for key, _, value in pairs}
