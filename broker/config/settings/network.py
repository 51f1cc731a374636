"""Broker settings of the network."""

from broker.config.definitions import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    PER_BROKER,
    Settings,
    formed,
    integer,
    long,
    string,
)
from broker.config.listeners import (
    DEFAULT_SECURITY_PROTOCOLS,
    ConnectionLimits,
    Listener,
    Listeners,
    SecurityProtocolMap,
    listeners_text,
    pairs_text,
    parse_connection_limits,
    parse_listeners,
    parse_security_protocols,
)
from broker.config.units import KIB, MIB, MINUTE_MS
from broker.config.validators import at_least, one_of
from broker.config.values import MAX_INT


class NetworkSettings(Settings):
    """Listeners, sockets and how many may connect."""

    listeners: Listeners = formed(
        "listeners",
        default=(Listener("PLAINTEXT", "", 9092),),
        into=parse_listeners,
        text_of=listeners_text,
        importance=HIGH,
        mode=PER_BROKER,
    )
    """Where the broker listens, `NAME://host:port`, several with commas between them."""
    advertised_listeners: Listeners = formed(
        "advertised.listeners",
        default=(),
        into=parse_listeners,
        text_of=listeners_text,
        importance=HIGH,
        mode=PER_BROKER,
    )
    """Where clients are told to find the broker, if not where it listens."""
    listener_security_protocol_map: SecurityProtocolMap = formed(
        "listener.security.protocol.map",
        default=DEFAULT_SECURITY_PROTOCOLS,
        into=parse_security_protocols,
        text_of=pairs_text,
        importance=LOW,
        mode=PER_BROKER,
    )
    """The security protocol of each listener, `NAME:PROTOCOL`."""
    inter_broker_listener_name: str | None = string("inter.broker.listener.name", default=None)
    """The listener that brokers use among themselves."""
    security_inter_broker_protocol: str = string(
        "security.inter.broker.protocol",
        default="PLAINTEXT",
        valid=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    """The protocol among brokers, when no listener is named for them."""
    control_plane_listener_name: str | None = string(
        "control.plane.listener.name", default=None, importance=HIGH
    )
    """A listener for the controller's requests alone."""
    socket_send_buffer_bytes: int = integer(
        "socket.send.buffer.bytes", default=100 * KIB, importance=HIGH
    )
    """SO_SNDBUF of the sockets; -1 leaves it to the system."""
    socket_receive_buffer_bytes: int = integer(
        "socket.receive.buffer.bytes", default=100 * KIB, importance=HIGH
    )
    """SO_RCVBUF of the sockets; -1 leaves it to the system."""
    socket_request_max_bytes: int = integer(
        "socket.request.max.bytes", default=100 * MIB, valid=at_least(1), importance=HIGH
    )
    """The largest request that is accepted; a larger one closes the connection."""
    socket_listen_backlog_size: int = integer(
        "socket.listen.backlog.size", default=50, valid=at_least(1)
    )
    """Connections that may wait to be accepted."""
    socket_connection_setup_timeout_ms: int = long(
        "socket.connection.setup.timeout.ms", default=10_000
    )
    """How long the first attempt to reach another broker may take."""
    socket_connection_setup_timeout_max_ms: int = long(
        "socket.connection.setup.timeout.max.ms", default=30_000
    )
    """The longest that later attempts to reach another broker may take."""
    connections_max_idle_ms: int = long("connections.max.idle.ms", default=10 * MINUTE_MS)
    """After how long without a request a connection is closed; negative: never."""
    connection_failed_authentication_delay_ms: int = integer(
        "connection.failed.authentication.delay.ms", default=100, valid=at_least(0), importance=LOW
    )
    """How long a refusal is held back, so that guessing is slow."""
    max_connections: int = integer(
        "max.connections", default=MAX_INT, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """Connections the broker accepts at the same time."""
    max_connections_per_ip: int = integer(
        "max.connections.per.ip", default=MAX_INT, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """Connections accepted at the same time from one address."""
    max_connections_per_ip_overrides: ConnectionLimits = formed(
        "max.connections.per.ip.overrides",
        default=(),
        into=parse_connection_limits,
        text_of=pairs_text,
        mode=CLUSTER_WIDE,
    )
    """Other limits for single hosts, `host:limit`, several with commas between them."""
    max_connection_creation_rate: int = integer(
        "max.connection.creation.rate", default=MAX_INT, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """New connections accepted per second."""
