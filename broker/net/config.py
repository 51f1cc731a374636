"""The settings of a broker's sockets, named as Kafka names them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.quota.rates import DEFAULT_WINDOWS, Windows


@dataclass(frozen=True)
class SocketServerConfig:
    """What the listeners of a broker share."""

    socket_request_max_bytes: int
    connections_max_idle_ms: int
    """Negative: idle connections are never closed."""
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    """Limits of single addresses, by address as a peer's is written."""
    max_connections_per_listener: Mapping[str, int] = field(default_factory=dict)
    """`listener.name.<name>.max.connections`, by listener name."""
    max_connection_creation_rate: int | None = None
    """New connections per second; None: any number."""
    max_connection_creation_rate_per_listener: Mapping[str, int] = field(default_factory=dict)
    """`listener.name.<name>.max.connection.creation.rate`, by listener name."""
    quota_windows: Windows = DEFAULT_WINDOWS
    """How the rate is measured."""
    protected_listener: str | None = None
    """The inter-broker listener, if there are others: `max.connections` does not hold it back."""
    queued_max_request_bytes: int = -1
    """Memory for large requests; -1 or 0: see `broker.net.request_memory`."""
    socket_listen_backlog_size: int = 50
    socket_send_buffer_bytes: int = -1
    """-1: the operating system sizes the buffer."""
    socket_receive_buffer_bytes: int = -1
    """-1: the operating system sizes the buffer."""
