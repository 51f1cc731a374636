"""Topics that a broker asks for while the controllership moves."""

import asyncio
from typing import Any

import pytest

from broker.controller.topic_admin import NewTopic
from broker.controller.topic_requests import creating_here, creating_topics
from broker.errors import ApiError, ErrorCode
from broker.net.broker_connection import Node
from broker.net.controller_channel import ControllerChannel
from broker.protocol.api_keys import ApiKey

WANTED = NewTopic("orders", 3, 2, configs={"cleanup.policy": "compact"})


class Elected:
    """A broker that is elected just after it has decided to ask somebody else."""

    is_active = False

    def __init__(self, failure: ApiError | None = None) -> None:
        self.created: list[NewTopic] = []
        self.failure = failure
        here = Node(1, "a", 1)
        peers: Any = None  # nobody else is asked
        self.channel = ControllerChannel(lambda: here, 1, peers)
        controller: Any = self
        self.channel.local = {ApiKey.CREATE_TOPICS: creating_here(controller)}
        self.create = creating_topics(controller, self.channel)

    async def create_topic(self, new: NewTopic) -> None:
        if self.failure is not None:
            raise self.failure
        self.created.append(new)


def test_regression_topic_is_created_by_a_broker_elected_while_it_asks_for_it() -> None:
    broker = Elected()
    asyncio.run(_created(broker))
    assert broker.created == [WANTED]


def test_why_it_cannot_be_is_told_as_by_any_controller() -> None:
    broker = Elected(ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, "orders"))
    with pytest.raises(ApiError) as refused:
        asyncio.run(_created(broker))
    assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


async def _created(broker: Elected) -> None:
    await broker.create(WANTED)
