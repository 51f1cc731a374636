"""Shared connections to the other brokers: one each, opened on demand and after a loss.

Requests that must keep their order or must not wait behind others (replica fetches, requests of the
controller) use connections of their own.
"""

import asyncio
from collections.abc import Awaitable, Callable

from broker.net.broker_connection import BrokerConnection, Node
from broker.protocol.schema import Request, ResponseT

Connect = Callable[[Node], Awaitable[BrokerConnection]]
"""Opens a connection over the inter-broker listener; ConnectionError if that fails."""


class Peers:
    """Connections to other brokers.

    Invariant: at most one connection per broker id, to its latest address.
    """

    def __init__(self, connect: Connect, request_timeout_ms: int) -> None:
        self._connect = connect
        self._timeout_s = request_timeout_ms / 1000
        self._connections: dict[int, BrokerConnection] = {}
        self._connecting: dict[int, asyncio.Lock] = {}

    async def send(self, node: Node, request: Request[ResponseT]) -> ResponseT:
        """Send to a broker; ConnectionError if it is unreachable, TimeoutError without a response.

        After a timeout the connection is closed: the next request opens a new one.
        """
        connection = await self._connection(node)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await connection.send(request)
        except TimeoutError:
            connection.close()
            raise

    async def _connection(self, node: Node) -> BrokerConnection:
        async with self._connecting.setdefault(node.node_id, asyncio.Lock()):
            known = self._connections.get(node.node_id)
            if known is not None:
                if known.is_open and known.node == node:
                    return known
                known.close()
            connection = self._connections[node.node_id] = await self._connect(node)
            return connection

    def close(self) -> None:
        """Close all connections; requests in flight fail."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
