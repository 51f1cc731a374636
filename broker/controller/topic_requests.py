"""Topics that a broker asks the controller for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from broker.controller.controller import Controller
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.net.controller_channel import ControllerChannel
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_TIMEOUT_S: Final = 10.0
"""Who wants the topic will ask again, and may find that it is there by then."""


def creating_topics(
    controller: Controller, channel: ControllerChannel
) -> Callable[[NewTopic], Awaitable[object]]:
    """What creates a topic: this broker if it is the controller, else by asking the one that is.

    ApiError says why it cannot be.
    """

    def create(new: NewTopic) -> Awaitable[object]:
        return controller.create_topic(new) if controller.is_active else _ask(channel, new)

    return create


def creating_here(
    controller: Controller,
) -> Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]]:
    """What answers such a request when this broker has become the controller meanwhile."""

    async def create(request: CreateTopicsRequest) -> CreateTopicsResponse:
        for topic in request.topics:
            configs = {config.name: config.value for config in topic.configs}
            await controller.create_topic(
                NewTopic(
                    topic.name, topic.num_partitions, topic.replication_factor, configs=configs
                )
            )
        return CreateTopicsResponse()

    return create


async def _ask(channel: ControllerChannel, new: NewTopic) -> None:
    configs = [CreatableTopicConfig(name=key, value=new.configs[key]) for key in new.configs]
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=new.name,
                num_partitions=new.num_partitions,
                replication_factor=new.replication_factor,
                configs=configs,
            )
        ],
        timeout_ms=int(1000 * _TIMEOUT_S),
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            response = await channel.send(request)
    except TimeoutError as error:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "no controller answered") from error
    for topic in response.topics:
        if topic.error_code:
            raise ApiError(ErrorCode(topic.error_code), topic.error_message or "")
