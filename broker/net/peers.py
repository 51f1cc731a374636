"""Connections from this broker to the others: one each, made when needed, made anew when lost.

What has to keep its order, or must not wait behind other requests (replication, the controller's
decisions), has connections of its own; these are for everything else.
"""

import asyncio
from collections.abc import Awaitable, Callable

from broker.net.broker_connection import BrokerConnection, Node
from broker.protocol.schema import Request, ResponseT

Connect = Callable[[Node], Awaitable[BrokerConnection]]
"""Opens a connection over the listener that brokers use among themselves; ConnectionError."""


class Peers:
    """The other brokers, as far as this one talks to them.

    Invariant: at most one connection per broker id, to its latest address.
    """

    def __init__(self, connect: Connect, request_timeout_ms: int) -> None:
        self._connect = connect
        self._timeout_s = request_timeout_ms / 1000
        self._connections: dict[int, BrokerConnection] = {}
        self._connecting: dict[int, asyncio.Lock] = {}

    async def send(self, node: Node, request: Request[ResponseT]) -> ResponseT:
        """Ask one of them; ConnectionError if it cannot be reached, TimeoutError if it is silent.

        A connection that is silent for so long is given up: the next request gets a new one.
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
        """Close all; requests under way fail."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
