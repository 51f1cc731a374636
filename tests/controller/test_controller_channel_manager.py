"""Requests are sent to a broker in order, each repeated until it is answered."""

import asyncio
from typing import Any

from broker.controller.controller_channel_manager import (
    ControllerChannelManager,
    LocalChannel,
    RemoteChannel,
)
from broker.net.broker_connection import BrokerConnection, Node
from broker.net.failures import ConnectionFailed
from broker.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.controller.simulation import SimulatedBroker

NODE = Node(2, "127.0.0.1", 9092)


def numbered(number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_epoch=number)


def epochs(broker: SimulatedBroker) -> list[int]:
    return [request.controller_epoch for request in broker.requests]


async def test_requests_are_repeated_over_a_new_connection_in_order() -> None:
    broker = SimulatedBroker(2)
    attempts = 0

    class Breaking:
        """Loses the first request of every connection but the third."""

        is_open = True

        async def send(self, request: Any) -> Any:
            if attempts < 3:
                raise ConnectionFailed("broken")
            return await broker.send(request)

        def close(self) -> None:
            """Nothing to close."""

    async def connect(node: Node) -> BrokerConnection:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ConnectionFailed(f"{node}: refused")
        return Breaking()  # type: ignore[return-value]

    channels = ControllerChannelManager(lambda _, node: RemoteChannel(node, connect, timeout_s=5))
    channels.add(2, NODE)
    answers: list[Any] = []
    for number in range(3):
        channels.send(2, numbered(number), answers.append)
    await channels.flush(2)
    assert epochs(broker) == [0, 1, 2]
    assert [type(answer) for answer in answers] == [UpdateMetadataResponse] * 3
    assert attempts == 3
    channels.close()


async def test_removed_broker_is_sent_nothing_and_flush_returns() -> None:
    broker = SimulatedBroker(1)
    broker.may_answer.clear()
    channels = ControllerChannelManager(lambda *_: LocalChannel(broker))
    channels.add(1, None)
    channels.send(1, numbered(1), lambda _: None)
    flushed = asyncio.create_task(channels.flush(1))
    await asyncio.sleep(0)
    channels.remove(1)
    await asyncio.wait_for(flushed, 5)
    channels.send(1, numbered(2), lambda _: None)
    await channels.flush(1)
    assert broker.requests == []


async def test_error_in_our_own_broker_does_not_stop_the_next_request() -> None:
    class Failing(SimulatedBroker):
        async def send(self, request: Any) -> Any:
            if isinstance(request, StopReplicaRequest):
                raise RuntimeError("a fault of ours")
            return await super().send(request)

        leader_and_isr = update_metadata = stop_replica = send

    broker = Failing(1)
    channels = ControllerChannelManager(lambda *_: LocalChannel(broker))
    channels.add(1, None)
    answers: list[StopReplicaResponse] = []
    channels.send(1, StopReplicaRequest(), answers.append)
    channels.send(1, numbered(7), lambda _: None)
    await channels.flush(1)
    assert epochs(broker) == [7]
    assert answers == []
    channels.close()
