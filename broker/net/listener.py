"""A listening socket and the connections that it accepted.

How many are accepted is decided by `ConnectionQuotas`. A connection that was idle for
`connections.max.idle.ms` is closed.
"""

import asyncio
import contextlib
import logging
import socket
from typing import Final

from broker.config import Listener as ListenerAddress
from broker.net.config import SocketServerConfig
from broker.net.connection import Connection, ConnectionContext, Peer, RequestHandler
from broker.net.connection_quotas import ConnectionQuotas
from broker.net.file_descriptors import OUT_OF_RESOURCES, connection_limit
from broker.net.listener_security import ListenerSecurity
from broker.net.poller import running_poller
from broker.net.tls_transport import TlsTransport
from broker.net.transport import PlainTransport, Transport

logger = logging.getLogger(__name__)

_QUIET_S = 10.0
"""After this time without bytes, a connection frees the memory of large frames."""

_NAME_BYTES = 16
"""Longest name of a congestion control (TCP_CA_NAME_MAX)."""
_TCP_CONGESTION: Final[int | None] = getattr(socket, "TCP_CONGESTION", None)
"""None on systems other than Linux."""

_ACCEPT_RETRY_S = 0.1
"""Pause after accept(2) failed because resources were exhausted."""

_GRACE_S = 1.0
"""How long a listener that stops waits for clients to read their responses."""


class Listener:
    """Accepts connections and owns them until they are closed."""

    def __init__(
        self,
        address: ListenerAddress,
        quotas: ConnectionQuotas,
        handle_request: RequestHandler,
        security: ListenerSecurity | None = None,
    ) -> None:
        self.address = address
        """Where it listens; after `bind` with the port that the system chose."""
        self._quotas = quotas
        self._handle_request = handle_request
        self._security = security or ListenerSecurity()
        self._connections: set[Connection] = set()
        self.num_accepted = 0
        """Connections since the start."""
        self._throttled: set[socket.socket] = set()
        """Sockets of addresses that connect too fast; they are closed after a delay."""
        self._changed = asyncio.Event()
        """Set whenever a connection is closed."""
        self._tasks: list[asyncio.Task[None]] = []
        self._socket: socket.socket
        self._context: ConnectionContext
        self._congestion: bytes
        """The congestion control that the system is configured for."""

    @property
    def num_connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    @property
    def addresses(self) -> list[tuple[str, int, str]]:
        """Host, port and listener of each open connection."""
        return [connection.peer[:3] for connection in self._connections.copy()]

    def bind(self) -> None:
        """Bind the socket; OSError if the address is in use or invalid."""
        self._socket = _listen(self.address, self._quotas.config)
        self._congestion = _disable_pacing(self._socket)
        self._context = ConnectionContext(
            self._handle_request,
            running_poller(),
            self._quotas.config.socket_request_max_bytes,
            self._quotas.request_memory,
            self._on_closed,
            self._security,
        )
        self.address = self.address._replace(port=self._socket.getsockname()[1])

    async def start(self) -> None:
        """Accept clients, including those in the backlog since `bind`."""
        self._tasks = [
            asyncio.create_task(self._accept()),
            asyncio.create_task(self._close_idle()),
        ]

    async def stop(self) -> None:
        """Stop accepting, and close every connection after its responses have been sent.

        The wait for clients that do not read is limited.
        """
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._socket.close()
        for client in list(self._throttled):
            self._close_throttled(client)
        for connection in list(self._connections):
            connection.close()
        try:
            async with asyncio.timeout(_GRACE_S):
                await self._all_closed()
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()
            await self._all_closed()

    async def _accept(self) -> None:
        """Accept connections, each when the quotas have room for it.

        While one waits, the others wait in the kernel's backlog: that is the back-pressure.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(self._socket)
            except OSError as error:
                await self._on_accept_failed(error)
                continue
            try:
                if client.fileno() >= connection_limit():
                    await self._quotas.wait_for_descriptors(client.fileno())
                await self._quotas.wait_for_slot(self.address.name)
            except asyncio.CancelledError:  # the listener was stopped
                client.close()
                raise
            host = address[0].removeprefix("::ffff:")  # an IPv4 client of a dual-stack socket
            throttle_ms = self._quotas.ip_throttle_ms
            if throttle_ms is not None and (delay_ms := throttle_ms(host)):
                self._close_later(client, delay_ms)
                continue
            peer = Peer(
                host, address[1], self.address.name, security_protocol=self._security.protocol
            )
            self._open(client, peer)

    def _close_later(self, client: socket.socket, delay_ms: int) -> None:
        """Keep the client waiting: it would connect again at once."""
        self._throttled.add(client)
        asyncio.get_running_loop().call_later(delay_ms / 1000, self._close_throttled, client)

    def _close_throttled(self, client: socket.socket) -> None:
        self._throttled.discard(client)
        client.close()

    async def _on_accept_failed(self, error: OSError) -> None:
        if error.errno in OUT_OF_RESOURCES:
            await asyncio.sleep(_ACCEPT_RETRY_S)
            await self._quotas.wait_for_descriptors(self._socket.fileno())
        else:  # an error of the pending connection: its client is gone
            logger.info("cannot accept connection listener=%s reason=%s", self.address, error)

    async def _all_closed(self) -> None:
        while self._connections:
            self._changed.clear()
            await self._changed.wait()

    def _open(self, client: socket.socket, peer: Peer) -> None:
        if not self._quotas.has_slot_for_ip(peer.host):
            limit = self._quotas.max_connections_per_ip(peer.host)
            logger.info("rejected connection peer=%s max.connections.per.ip=%s", peer, limit)
            client.close()
            return
        self.num_accepted += 1
        connection = Connection(self._transport(client), peer, self._context)
        self._connections.add(connection)
        self._quotas.add(connection)
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if client.getsockname()[0] != client.getpeername()[0]:  # not within this machine
                _set_congestion(client, self._congestion)
            connection.start()
        except OSError:  # the client is gone already
            connection.abort()

    def _transport(self, client: socket.socket) -> Transport:
        context = self._security.tls
        return PlainTransport(client) if context is None else TlsTransport(client, context)

    def _on_closed(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._quotas.remove(connection)
        self._changed.set()

    async def _close_idle(self) -> None:
        """Close connections that are idle for too long, or too slow while memory is exhausted."""
        loop = asyncio.get_running_loop()
        max_idle_s = self._quotas.config.connections_max_idle_ms / 1000
        pause_s = min(max(max_idle_s / 4, 0.05), _QUIET_S) if max_idle_s >= 0 else _QUIET_S
        while True:
            await asyncio.sleep(pause_s)
            is_memory_exhausted = self._quotas.request_memory.has_waiting
            for connection in list(self._connections):
                idle_s = loop.time() - connection.last_active_s
                if 0 <= max_idle_s < idle_s:
                    logger.info("closing idle connection peer=%s", connection.peer)
                    connection.abort()
                elif is_memory_exhausted:
                    connection.maybe_close_slow(loop.time())
                if idle_s > _QUIET_S:
                    connection.shrink()


def _listen(address: ListenerAddress, config: SocketServerConfig) -> socket.socket:
    """Create the listening socket; without a host, on all interfaces for IPv4 and IPv6.

    Accepted sockets inherit its buffer sizes.
    """
    backlog = config.socket_listen_backlog_size
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
        (socket.SO_SNDBUF, config.socket_send_buffer_bytes),
        (socket.SO_RCVBUF, config.socket_receive_buffer_bytes),
    ):
        if size >= 0:
            listening.setsockopt(socket.SOL_SOCKET, option, size)
    listening.setblocking(False)
    return listening


def _disable_pacing(listening: socket.socket) -> bytes:
    """Make accepted connections start with a congestion control that does not pace.

    Returns the system's choice, which connections over a network get afterwards. BBR paces: its
    timer for every few packets costs more than the sending, and a connection that has ever used it
    stays paced. So connections within the machine must not start with it. Systems without a choice
    (macOS) do not pace.
    """
    if _TCP_CONGESTION is None:
        return b""
    usual = listening.getsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _NAME_BYTES)
    with contextlib.suppress(OSError):  # not available in this kernel: keep the system's choice
        _set_congestion(listening, b"reno")
    return usual.rstrip(b"\0")


def _set_congestion(client: socket.socket, name: bytes) -> None:
    if _TCP_CONGESTION is not None:
        client.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, name)
