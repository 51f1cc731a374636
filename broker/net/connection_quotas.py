"""How many connections a broker has and may have, over all of its listeners.

Kafka's class of the same name does the same:

- over `max.connections` (or the limit of its listener) a new connection waits in the acceptor until
  another one is closed; one to the inter-broker listener is accepted instead, and the longest-idle
  connection of another listener is closed for it;
- over `max.connection.creation.rate` (or the rate of its listener) a new connection waits in the
  acceptor, at most for a window of the rate;
- over `max.connections.per.ip` a new connection is closed;
- over the rate at which its address may connect (quota `connection_creation_rate`), a new
  connection is closed after a delay.

Running out of file descriptors is treated like `max.connections`: the acceptor waits, and
connections that have been idle longest are closed to make room.
"""

import asyncio
import heapq
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from broker.net.config import SocketServerConfig
from broker.net.connection import Connection
from broker.net.file_descriptors import connection_limit, has_descriptors_for_connections
from broker.net.request_memory import RequestMemory, default_limit_bytes
from broker.quota.connection_rates import CreationRates

logger = logging.getLogger(__name__)

_MIN_IDLE_S: Final = 1.0
"""A connection that was active more recently is not closed to free its descriptor."""

_CLOSED_AT_ONCE: Final = 16
"""At most this many idle connections are closed at a time: finding them costs a scan of all."""

_RETRY_S: Final = 0.1
"""How often a shortage of descriptors is checked: they are not only freed by connections."""

_WARNING_INTERVAL_S: Final = 60.0


class ConnectionQuotas:
    """The open connections of a broker. Shared by its listeners."""

    def __init__(self, config: SocketServerConfig) -> None:
        self.config = config
        """Replaced whole when a dynamic setting changes; read at each new connection."""
        self.request_memory = RequestMemory(
            config.queued_max_request_bytes
            if config.queued_max_request_bytes > 0
            else default_limit_bytes(config.socket_request_max_bytes)
        )
        self._connections: set[Connection] = set()
        """Every open connection that was accepted."""
        self._per_ip: Counter[str] = Counter()
        """Invariant: counts `_connections` by address; no entry is 0."""
        self._per_listener: Counter[str] = Counter()
        """Invariant: counts `_connections` by listener name."""
        self._closed = asyncio.Event()
        """Set whenever a connection is closed or the limits change."""
        self._creation_rates = CreationRates(config.quota_windows)
        self._warned_at_s = float("-inf")
        self.ip_throttle_ms: Callable[[str], int] | None = None
        """Counts a new connection of an address; returns its delay if that exceeds its rate. None
        while no rate is limited."""

    def reconfigure(self, config: SocketServerConfig) -> None:
        """Apply changed limits: to new connections, and `max.connections` to those that are open.

        The limits per address and listener close no open connection, as in Kafka.
        """
        self.config = config
        self._close_excess()
        self._closed.set()

    def max_connections_per_ip(self, host: str) -> int:
        """How many connections this address may have."""
        config = self.config
        return config.max_connections_per_ip_overrides.get(host, config.max_connections_per_ip)

    def has_slot_for_ip(self, host: str) -> bool:
        """Whether this address may have one more connection."""
        return self._per_ip[host] < self.max_connections_per_ip(host)

    def add(self, connection: Connection) -> None:
        """Count a connection; over `max.connections`, close one of an unprotected listener."""
        self._connections.add(connection)
        self._per_ip[connection.peer.host] += 1
        self._per_listener[connection.peer.listener_name] += 1
        self._close_excess()

    def remove(self, connection: Connection) -> None:
        """Stop counting a connection that was closed."""
        self._connections.remove(connection)
        self._per_listener[connection.peer.listener_name] -= 1
        host = connection.peer.host
        self._per_ip[host] -= 1
        if not self._per_ip[host]:
            del self._per_ip[host]
        self._closed.set()

    async def wait_for_slot(self, listener_name: str) -> None:
        """Return when the limits of the broker and of the listener allow one more connection."""
        loop = asyncio.get_running_loop()
        if delay_ms := self._creation_throttle_ms(listener_name, loop.time()):
            await asyncio.sleep(delay_ms / 1000)
        while not self._has_slot(listener_name):
            self._closed.clear()
            await self._closed.wait()

    def _creation_throttle_ms(self, listener_name: str, now_s: float) -> int:
        """Count a new connection; returns how long it waits because of the rate of new connections.

        The rate of the whole broker does not hold back the inter-broker listener.
        """
        config, rates, now_ms = self.config, self._creation_rates, now_s * 1000
        limit = config.max_connection_creation_rate_per_listener.get(listener_name)
        delay_ms = rates.record(listener_name, limit, now_ms)
        if listener_name == config.protected_listener:
            return delay_ms
        return max(delay_ms, rates.record(None, config.max_connection_creation_rate, now_ms))

    def _has_slot(self, listener_name: str) -> bool:
        config = self.config
        limit = config.max_connections_per_listener.get(listener_name)
        if limit is not None and self._per_listener[listener_name] >= limit:
            return False
        is_protected = listener_name == config.protected_listener
        return is_protected or len(self._connections) < config.max_connections

    async def wait_for_descriptors(self, any_open: int) -> None:
        """Return when connections may use one more file descriptor; close idle ones for it."""
        loop = asyncio.get_running_loop()
        while not has_descriptors_for_connections(any_open):
            num_closed = self._close_idlest(
                _CLOSED_AT_ONCE, lambda other: loop.time() - other.last_active_s >= _MIN_IDLE_S
            )
            self._maybe_warn(loop.time(), num_closed)
            if not num_closed:
                await self._wait_for_close(_RETRY_S)

    async def _wait_for_close(self, timeout_s: float) -> None:
        self._closed.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._closed.wait()
        except TimeoutError:
            return

    def _close_excess(self) -> None:
        """Over `max.connections`, close the idlest connections of listeners without protection."""
        excess = len(self._connections) - self.config.max_connections
        if excess > 0:
            protected = self.config.protected_listener
            self._close_idlest(excess, lambda other: other.peer.listener_name != protected)

    def _close_idlest(self, num: int, may_close: Callable[[Connection], bool]) -> int:
        """Close those that were idle longest and have no request in progress; return how many."""
        candidates = (
            connection
            for connection in self._connections
            if not connection.has_request_in_progress and may_close(connection)
        )
        idlest = heapq.nsmallest(num, candidates, key=lambda connection: connection.last_active_s)
        for connection in idlest:
            connection.abort()
        return len(idlest)

    def _maybe_warn(self, now_s: float, num_closed: int) -> None:
        if now_s - self._warned_at_s < _WARNING_INTERVAL_S:
            return
        self._warned_at_s = now_s
        logger.warning(
            "too many open files: new connections wait, idle ones are closed "
            "connections=%s closed=%s limit=%s (raise the limit of open files: ulimit -n)",
            len(self._connections),
            num_closed,
            connection_limit(),
        )
