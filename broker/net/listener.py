"""A listening socket and the connections that came through it.

The limits are Kafka's: over `max.connections` a new connection waits until another one ends, over
`max.connections.per.ip` it is closed, and one that was silent for `connections.max.idle.ms` too.
"""

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from dataclasses import dataclass, field

from broker.config import Listener as ListenerAddress
from broker.net.connection import Answerer, Connection, Peer
from broker.net.poller import Poller, running_poller

logger = logging.getLogger(__name__)

_QUIET_S = 10.0
"""A connection that was quiet for this long gives back the memory of its large frames."""

_NAME_BYTES = 16
"""So long the name of a congestion control may be."""

_GRACE_S = 1.0
"""How long clients have, when the listener stops, to read what was written to them."""


@dataclass(frozen=True)
class Limits:
    """What the listeners of a broker, who share it, allow their clients, and what is in use."""

    request_max_bytes: int
    max_idle_ms: int
    max_connections: int
    max_connections_per_ip: int
    per_ip_overrides: dict[str, int] = field(default_factory=dict)
    backlog: int = 50
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    in_use: Counter[str] = field(default_factory=Counter, init=False)
    """Connections per address, of all listeners together."""
    given_back: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set whenever a connection ends."""

    async def has_room(self) -> None:
        """Return when there are less than `max_connections`."""
        while self.in_use.total() >= self.max_connections:
            self.given_back.clear()
            await self.given_back.wait()

    def take(self, host: str) -> bool:
        """Count a connection; False, and nothing counted, if its address has enough of them."""
        if self.in_use[host] >= self.of_ip(host):
            return False
        self.in_use[host] += 1
        return True

    def give_back(self, host: str) -> None:
        """A connection has ended."""
        self.in_use[host] -= 1
        if not self.in_use[host]:
            del self.in_use[host]
        self.given_back.set()

    def of_ip(self, host: str) -> int:
        """How many connections this address may have."""
        return self.per_ip_overrides.get(host, self.max_connections_per_ip)


class Listener:
    """Accepts connections and owns them until they are gone."""

    def __init__(self, address: ListenerAddress, limits: Limits, answerer: Answerer) -> None:
        self.address = address
        """Where it listens; after `start` with the port that it really got."""
        self._limits = limits
        self._answerer = answerer
        self._connections: set[Connection] = set()
        self._changed = asyncio.Event()
        """Set whenever one of them ends."""
        self._tasks: list[asyncio.Task[None]] = []
        self._socket: socket.socket
        self._poller: Poller
        self._congestion: bytes
        """The system's congestion control."""

    @property
    def num_connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    def bind(self) -> None:
        """Take the address, so that it is known; OSError if it cannot be had."""
        self._socket = _listen(self.address, self._limits)
        self._congestion = _begin_without_pacing(self._socket)
        self._poller = running_poller()
        self.address = self.address._replace(port=self._socket.getsockname()[1])

    async def start(self) -> None:
        """Let clients in; those that came since `bind` have waited."""
        self._tasks = [
            asyncio.create_task(self._accept()),
            asyncio.create_task(self._close_idle()),
        ]

    async def stop(self) -> None:
        """Accept no more, and close every connection after what was written has gone out.

        A client that does not read does not hold it up for long.
        """
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._socket.close()
        for connection in list(self._connections):
            connection.close()
        try:
            async with asyncio.timeout(_GRACE_S):
                await self._all_gone()
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()
            await self._all_gone()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(self._socket)
            except OSError as error:  # out of file descriptors, most likely: wait for some
                logger.error("cannot accept listener=%s reason=%s", self.address, error)
                await asyncio.sleep(0.1)
                continue
            try:
                await self._limits.has_room()
            except asyncio.CancelledError:  # stopped, with a client that waited for its turn
                client.close()
                raise
            host = address[0].removeprefix("::ffff:")  # an IPv4 client of a dual-stack socket
            self._welcome(client, Peer(host, address[1], self.address.name))

    async def _all_gone(self) -> None:
        while self._connections:
            self._changed.clear()
            await self._changed.wait()

    def _welcome(self, client: socket.socket, peer: Peer) -> None:
        if not self._limits.take(peer.host):
            limit = self._limits.of_ip(peer.host)
            logger.info("refused connection peer=%s max.connections.per.ip=%s", peer, limit)
            client.close()
            return
        connection = Connection(
            client,
            peer,
            self._answerer,
            self._poller,
            self._limits.request_max_bytes,
            self._forget,
        )
        self._connections.add(connection)
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if client.getsockname()[0] != client.getpeername()[0]:  # it comes over a network
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._congestion)
            connection.start()
        except OSError:  # it went away at once
            connection.abort()

    def _forget(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._limits.give_back(connection.peer.host)
        self._changed.set()

    async def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        max_idle_s = self._limits.max_idle_ms / 1000
        pause_s = min(max(max_idle_s / 4, 0.05), _QUIET_S) if max_idle_s >= 0 else _QUIET_S
        while True:
            await asyncio.sleep(pause_s)
            for connection in list(self._connections):
                idle_s = loop.time() - connection.last_active_s
                if 0 <= max_idle_s < idle_s:
                    logger.info("closing idle connection peer=%s", connection.peer)
                    connection.abort()
                elif idle_s > _QUIET_S:
                    connection.shrink()


def _listen(address: ListenerAddress, limits: Limits) -> socket.socket:
    """A listening socket; on all interfaces, IPv4 and IPv6 both, when no host is given.

    Those that it accepts inherit its buffers.
    """
    backlog = limits.backlog
    if not address.host and socket.has_dualstack_ipv6():
        listening = socket.create_server(
            ("", address.port), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True
        )
    else:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        listening = socket.create_server(
            (address.host, address.port), family=family, backlog=backlog
        )
    for option, size in (
        (socket.SO_SNDBUF, limits.send_buffer_bytes),
        (socket.SO_RCVBUF, limits.receive_buffer_bytes),
    ):
        if size >= 0:
            listening.setsockopt(socket.SOL_SOCKET, option, size)
    listening.setblocking(False)
    return listening


def _begin_without_pacing(listening: socket.socket) -> bytes:
    """Let connections begin under a congestion control that does not pace what they send.

    What the system would have chosen is given back, for connections over a network. BBR paces, with
    a timer for each few packets that costs more than the sending; and a connection that was ever
    under it is paced for good. So those within the machine must not begin with it.
    """
    usual = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES)
    with contextlib.suppress(OSError):  # not a kernel with this choice: then as the system does
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    return usual.rstrip(b"\0")
