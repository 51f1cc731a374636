"""Creates topics on the active controller, whether that is this broker or another one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from broker.controller.kafka_controller import KafkaController
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.net.node_to_controller_channel import NodeToControllerChannel
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_TIMEOUT_S: Final = 10.0
"""How long a remote controller may take. The client retries, and may find the topic then."""


def topic_creator(
    controller: KafkaController, channel: NodeToControllerChannel
) -> Callable[[NewTopic], Awaitable[object]]:
    """A function that creates a topic: here if this broker is the controller, else by request.

    It raises ApiError if the topic cannot be created.
    """

    def create(new: NewTopic) -> Awaitable[object]:
        return controller.create_topic(new) if controller.is_active else _ask(channel, new)

    return create


def local_topic_creator(
    controller: KafkaController,
) -> Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]]:
    """A function that creates a topic on this broker, after it has become the controller."""

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


async def _ask(channel: NodeToControllerChannel, new: NewTopic) -> None:
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
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "the controller did not answer") from error
    for topic in response.topics:
        if topic.error_code:
            raise ApiError(ErrorCode(topic.error_code), topic.error_message or "")
