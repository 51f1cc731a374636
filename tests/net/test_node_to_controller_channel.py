"""The channel to the controller: local, remote, or unknown."""

import asyncio
from typing import Any

import pytest

from broker.errors import ApiError, ErrorCode
from broker.net.broker_connection import Node
from broker.net.node_to_controller_channel import NoController, NodeToControllerChannel
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

REQUEST = AllocateProducerIdsRequest(broker_id=1)
GIVEN = AllocateProducerIdsResponse(producer_id_start=7)
NOT_CONTROLLER = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
HERE, OTHER = Node(1, "a", 1), Node(2, "b", 2)


class Cluster:
    """Reports one controller after the other, and responds for both brokers."""

    def __init__(self, *controllers: Node | None, answers: list[Any] | None = None) -> None:
        self.controllers = list(controllers)
        self.answers = answers or [GIVEN]
        self.asked: list[int] = []
        self.channel = NodeToControllerChannel(self.controllers_turn, 1, self)  # type: ignore[arg-type]
        self.channel.local = {ApiKey.ALLOCATE_PRODUCER_IDS: lambda _: self.answer(1)}

    def controllers_turn(self) -> Node | None:
        return self.controllers.pop(0) if len(self.controllers) > 1 else self.controllers[0]

    async def send(self, node: Node, _: Any) -> Any:
        return await self.answer(node.node_id)

    async def answer(self, broker_id: int) -> Any:
        self.asked.append(broker_id)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize("controller", [HERE, OTHER])
def test_request_reaches_a_local_or_remote_controller(controller: Node) -> None:
    cluster = Cluster(controller)
    assert asyncio.run(cluster.channel.send(REQUEST)) is GIVEN
    assert cluster.asked == [controller.node_id]


def test_request_waits_until_there_is_a_controller() -> None:
    cluster = Cluster(None, None, OTHER)
    assert asyncio.run(cluster.channel.send(REQUEST)) is GIVEN
    assert cluster.asked == [2]


@pytest.mark.parametrize(
    "refusal",
    [NOT_CONTROLLER, ApiError(ErrorCode.NOT_CONTROLLER), ConnectionError(), TimeoutError()],
)
def test_not_controller_is_retried(refusal: Any) -> None:
    cluster = Cluster(HERE, OTHER, answers=[refusal, GIVEN])
    assert asyncio.run(cluster.channel.send(REQUEST)) is GIVEN
    assert cluster.asked == [1, 2]


def test_other_errors_are_raised() -> None:
    cluster = Cluster(HERE, answers=[ApiError(ErrorCode.STALE_BROKER_EPOCH)])
    with pytest.raises(ApiError) as refused:
        asyncio.run(cluster.channel.send(REQUEST))
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_single_attempt_does_not_wait() -> None:
    with pytest.raises(NoController):
        asyncio.run(Cluster(None).channel.attempt(REQUEST))
