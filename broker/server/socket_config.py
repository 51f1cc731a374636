"""The settings of listeners and connections, taken from those of the broker."""

import ipaddress
import socket
from typing import Final

from broker.config import BrokerConfig
from broker.config.values import MAX_INT
from broker.net.config import SocketServerConfig
from broker.quota.rates import Windows

_LISTENER_PREFIX: Final = "listener.name."
_MAX_CONNECTIONS: Final = "max.connections"
_CREATION_RATE: Final = "max.connection.creation.rate"


def connection_settings(config: BrokerConfig) -> tuple[object, ...]:
    """The dynamic settings that `socket_server_config` depends on."""
    return (
        config.max_connections,
        config.max_connections_per_ip,
        config.max_connections_per_ip_overrides,
        config.max_connection_creation_rate,
        _per_listener(config, _MAX_CONNECTIONS),
        _per_listener(config, _CREATION_RATE),
    )


def socket_server_config(config: BrokerConfig) -> SocketServerConfig:
    """The settings of all listeners.

    OSError if the host of an override cannot be resolved, ConfigError for a
    limit of a listener that is not a number.
    """
    creation_rate = config.max_connection_creation_rate
    return SocketServerConfig(
        socket_request_max_bytes=config.socket_request_max_bytes,
        connections_max_idle_ms=config.connections_max_idle_ms,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides={
            _address_of(host): limit for host, limit in config.max_connections_per_ip_overrides
        },
        max_connections_per_listener=_per_listener(config, _MAX_CONNECTIONS),
        max_connection_creation_rate=None if creation_rate == MAX_INT else creation_rate,
        max_connection_creation_rate_per_listener=_per_listener(config, _CREATION_RATE),
        quota_windows=Windows(config.quota_window_num, 1000 * config.quota_window_size_seconds),
        protected_listener=config.inter_broker_listener if len(config.listeners) > 1 else None,
        queued_max_request_bytes=config.queued_max_request_bytes,
        socket_listen_backlog_size=config.socket_listen_backlog_size,
        socket_send_buffer_bytes=config.send_buffer_bytes,
        socket_receive_buffer_bytes=config.receive_buffer_bytes,
    )


def _per_listener(config: BrokerConfig, setting: str) -> dict[str, int]:
    """`listener.name.<name>.<setting>`, by the name in upper case."""
    limits: dict[str, int] = {}
    for listener in config.listeners:
        key = f"{_LISTENER_PREFIX}{listener.name.lower()}.{setting}"
        if (text := config.originals.get(key)) is not None:
            limits[listener.name] = BrokerConfig.settings[setting].parse(text)
    return limits


def _address_of(host: str) -> str:
    """The address of a host, written as that of a peer is; as Kafka, one address per name."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        try:
            return socket.gethostbyname(host)
        except OSError as error:
            raise OSError(f"max.connections.per.ip.overrides: cannot resolve {host}") from error
