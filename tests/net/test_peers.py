"""Connections between brokers: shared, one each, opened again after a loss."""

import asyncio
from typing import Any

import pytest

from broker.net.broker_connection import Node
from broker.net.peers import Peers

HERE, MOVED = Node(2, "a", 1), Node(2, "a", 2)


class Connection:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.is_open = True
        self.is_silent = False

    async def send(self, request: Any) -> Any:
        if self.is_silent:
            await asyncio.Event().wait()
        return request

    def close(self) -> None:
        self.is_open = False


class Network:
    def __init__(self) -> None:
        self.made: list[Connection] = []
        self.peers = Peers(self.connect, request_timeout_ms=50)  # type: ignore[arg-type]

    async def connect(self, node: Node) -> Connection:
        await asyncio.sleep(0)
        self.made.append(Connection(node))
        return self.made[-1]

    async def send(self, node: Node = HERE) -> None:
        assert await self.peers.send(node, "request") == "request"  # type: ignore[arg-type]


async def shared() -> None:
    network = Network()
    await asyncio.gather(*(network.send() for _ in range(5)))
    assert len(network.made) == 1
    network.made[0].close()
    await network.send()
    assert len(network.made) == 2
    await network.send(MOVED)
    assert [made.node for made in network.made] == [HERE, HERE, MOVED]
    assert [made.is_open for made in network.made] == [False, False, True]
    network.peers.close()
    assert not network.made[2].is_open


async def silent() -> None:
    network = Network()
    await network.send()
    network.made[0].is_silent = True
    with pytest.raises(TimeoutError):
        await network.send()
    assert not network.made[0].is_open
    await network.send()
    assert len(network.made) == 2


def test_connection_is_shared_until_it_is_lost_or_the_broker_moves() -> None:
    asyncio.run(shared())


def test_connection_is_replaced_after_a_timeout() -> None:
    asyncio.run(silent())
