"""Topics that a broker requests while the controller changes."""

import asyncio
from typing import Any

import pytest

from broker.controller.topic_admin import NewTopic
from broker.controller.topic_creator import local_topic_creator, topic_creator
from broker.errors import ApiError, ErrorCode
from broker.net.broker_connection import Node
from broker.net.node_to_controller_channel import NodeToControllerChannel
from broker.protocol.api_keys import ApiKey

WANTED = NewTopic("orders", 3, 2, configs={"cleanup.policy": "compact"})


class Elected:
    """A broker that is elected just after it has decided to send a request to another one."""

    is_active = False

    def __init__(self, failure: ApiError | None = None) -> None:
        self.created: list[NewTopic] = []
        self.failure = failure
        here = Node(1, "a", 1)
        peers: Any = None  # no request is sent
        self.channel = NodeToControllerChannel(lambda: here, 1, peers)
        controller: Any = self
        self.channel.local = {ApiKey.CREATE_TOPICS: local_topic_creator(controller)}
        self.create = topic_creator(controller, self.channel)

    async def create_topic(self, new: NewTopic) -> None:
        if self.failure is not None:
            raise self.failure
        self.created.append(new)


def test_regression_topic_is_created_by_a_broker_elected_while_it_asks_for_it() -> None:
    broker = Elected()
    asyncio.run(_created(broker))
    assert broker.created == [WANTED]


def test_local_creation_returns_the_same_error_as_a_remote_controller() -> None:
    broker = Elected(ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, "orders"))
    with pytest.raises(ApiError) as refused:
        asyncio.run(_created(broker))
    assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


async def _created(broker: Elected) -> None:
    await broker.create(WANTED)
