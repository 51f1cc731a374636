"""Settings with a syntax of their own: listeners, security protocols, connection limits."""

import re
from typing import Final, NamedTuple

from broker.config.values import is_whole_number, split_list


class Listener(NamedTuple):
    """An address to listen on or to advertise: `PLAINTEXT://host:9092`."""

    name: str
    host: str  # empty: all interfaces
    port: int  # 0: any free port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


Listeners = tuple[Listener, ...]
SecurityProtocolMap = tuple[tuple[str, str], ...]
"""Pairs of listener name and security protocol."""
ConnectionLimits = tuple[tuple[str, int], ...]
"""Pairs of host and connection limit."""

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
DEFAULT_SECURITY_PROTOCOLS: Final = tuple(
    (name, name) for name in ("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")
)
"""By default each protocol is a listener of the same name, in Kafka's order."""

_LISTENER: Final = re.compile(r"(.+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*")
_MAX_PORT: Final = 65535


def parse_listeners(text: str) -> Listeners:
    """Parse listeners; ValueError if one is not NAME://host:port, or a name is repeated."""
    listeners = tuple(_parse_listener(part) for part in split_list(text) if part)
    if len({listener.name for listener in listeners}) < len(listeners):
        raise ValueError("Each listener must have a different name")
    return listeners


def _parse_listener(text: str) -> Listener:
    match = _LISTENER.fullmatch(text)
    if not match:
        raise ValueError(f"{text} is not NAME://host:port, e.g. PLAINTEXT://0.0.0.0:9092")
    name, host, port = match.groups()
    if not 0 <= int(port) <= _MAX_PORT:
        raise ValueError(f"the port of {text} is not between 0 and {_MAX_PORT}")
    return Listener(name.upper(), host, int(port))


def listeners_text(listeners: Listeners) -> str | None:
    """The text of listeners, as in a file; None if the list is empty."""
    return ",".join(map(str, listeners)) or None


def parse_security_protocols(text: str) -> SecurityProtocolMap:
    """Parse `NAME:PROTOCOL,…`; ValueError if a protocol is unknown."""
    pairs = tuple((name.upper(), protocol.upper()) for name, protocol in _pairs(text))
    for _, protocol in pairs:
        if protocol not in SECURITY_PROTOCOLS:
            wanted = ", ".join(SECURITY_PROTOCOLS)
            raise ValueError(f"Invalid security protocol `{protocol}`; allowed are {wanted}")
    return pairs


def parse_connection_limits(text: str) -> ConnectionLimits:
    """Parse `host:limit,…`; ValueError if a host or limit is invalid."""
    return tuple(_connection_limit(host, limit) for host, limit in _pairs(text))


def _connection_limit(host: str, limit: str) -> tuple[str, int]:
    if not _HOST.fullmatch(host):
        raise ValueError(f"{host} is not a host name or address")
    if not is_whole_number(limit):
        raise ValueError(f"{limit} is not a number of connections")
    return host, int(limit)


def _pairs(text: str) -> list[tuple[str, str]]:
    """Split at the last colon, because hosts may be IPv6 addresses."""
    pairs = []
    for part in filter(None, split_list(text)):
        left, colon, right = part.rpartition(":")
        if not colon:
            raise ValueError(f"{part} is not a pair separated by a colon")
        pairs.append((left.strip(), right.strip()))
    return pairs


def pairs_text(pairs: SecurityProtocolMap | ConnectionLimits) -> str:
    """The text of pairs, as in a file."""
    return ",".join(f"{left}:{right}" for left, right in pairs)
