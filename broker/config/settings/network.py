"""Broker settings for the network."""

from typing import Final

from broker.config.definitions import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    PER_BROKER,
    Settings,
    formed,
    integer,
    long,
    no_effect,
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

_FIXED_CONNECT_TIMEOUT: Final = no_effect("connecting to a broker times out after 10 s")


class NetworkSettings(Settings):
    """Listeners, sockets and connection limits."""

    listeners: Listeners = formed(
        "listeners",
        default=(Listener("PLAINTEXT", "", 9092),),
        into=parse_listeners,
        text_of=listeners_text,
        importance=HIGH,
        mode=PER_BROKER,
    )
    """The addresses the broker listens on, `NAME://host:port`, separated by commas."""
    advertised_listeners: Listeners = formed(
        "advertised.listeners",
        default=(),
        into=parse_listeners,
        text_of=listeners_text,
        importance=HIGH,
        mode=PER_BROKER,
    )
    """The addresses that clients use, if they differ from `listeners`."""
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
    """The listener for connections between brokers."""
    security_inter_broker_protocol: str = string(
        "security.inter.broker.protocol",
        default="PLAINTEXT",
        valid=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    """The security protocol between brokers if no listener is named for them."""
    control_plane_listener_name: str | None = string(
        "control.plane.listener.name",
        default=None,
        importance=HIGH,
    )
    """The listener for requests of the controller."""
    socket_send_buffer_bytes: int = integer(
        "socket.send.buffer.bytes", default=100 * KIB, importance=HIGH
    )
    """SO_SNDBUF of sockets; -1: the default of the system."""
    socket_receive_buffer_bytes: int = integer(
        "socket.receive.buffer.bytes", default=100 * KIB, importance=HIGH
    )
    """SO_RCVBUF of sockets; -1: the default of the system."""
    socket_request_max_bytes: int = integer(
        "socket.request.max.bytes", default=100 * MIB, valid=at_least(1), importance=HIGH
    )
    """The maximum size of a request; a larger one closes the connection."""
    socket_listen_backlog_size: int = integer(
        "socket.listen.backlog.size", default=50, valid=at_least(1)
    )
    """The maximum number of connections waiting to be accepted."""
    socket_connection_setup_timeout_ms: int = long(
        "socket.connection.setup.timeout.ms", default=10_000, effect=_FIXED_CONNECT_TIMEOUT
    )
    """How long the first attempt to connect to another broker may take."""
    socket_connection_setup_timeout_max_ms: int = long(
        "socket.connection.setup.timeout.max.ms", default=30_000, effect=_FIXED_CONNECT_TIMEOUT
    )
    """The maximum duration of later attempts to connect to another broker."""
    connections_max_idle_ms: int = long("connections.max.idle.ms", default=10 * MINUTE_MS)
    """How long an idle connection is kept open; negative: for ever."""
    connection_failed_authentication_delay_ms: int = integer(
        "connection.failed.authentication.delay.ms",
        default=100,
        valid=at_least(0),
        importance=LOW,
    )
    """The delay before a connection that failed to authenticate is closed."""
    max_connections: int = integer(
        "max.connections", default=MAX_INT, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """The maximum number of connections of the broker."""
    max_connections_per_ip: int = integer(
        "max.connections.per.ip", default=MAX_INT, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """The maximum number of connections from one IP address."""
    max_connections_per_ip_overrides: ConnectionLimits = formed(
        "max.connections.per.ip.overrides",
        default=(),
        into=parse_connection_limits,
        text_of=pairs_text,
        mode=CLUSTER_WIDE,
    )
    """Other limits for single hosts, `host:limit`, separated by commas."""
    max_connection_creation_rate: int = integer(
        "max.connection.creation.rate",
        default=MAX_INT,
        valid=at_least(0),
        mode=CLUSTER_WIDE,
    )
    """The maximum number of new connections per second."""
