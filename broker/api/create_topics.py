"""Answers CreateTopics; only the controller does.

From version 5 on the answer shows what was made: partitions, replicas and the configuration with
its sources (KIP-525). With `validate_only` everything is checked and nothing is made.
"""

from collections import Counter
from collections.abc import Iterable

from broker.api.context import RequestContext
from broker.config.description import describe_topic
from broker.controller.topics import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Create one after the other; one that cannot be made does not keep the others."""
    repeated = {n for n, times in Counter(t.name for t in request.topics).items() if times > 1}
    results = []
    for topic in _once_each(request.topics):
        if topic.name in repeated:
            results.append(_failed(topic.name, _named_twice(topic.name)))
        else:
            results.append(await _create(topic, request.validate_only, context))
    return CreateTopicsResponse(topics=results)


def _once_each(topics: Iterable[CreatableTopic]) -> Iterable[CreatableTopic]:
    return {topic.name: topic for topic in topics}.values()


def _named_twice(name: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        f"Create topics request contains multiple entries for the topic {name}.",
    )


async def _create(
    topic: CreatableTopic, validate_only: bool, context: RequestContext
) -> CreatableTopicResult:
    try:
        created = await context.services.controller.create_topic(
            _plan(topic), validate_only=validate_only
        )
    except ApiError as error:
        return _failed(topic.name, error)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=created.topic_id,
        error_message=None,
        num_partitions=len(created.assignment),
        replication_factor=len(created.assignment[0]),
        configs=_configs(topic, context),
    )


def _plan(topic: CreatableTopic) -> NewTopic:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        manual_assignment={a.partition_index: a.broker_ids for a in topic.assignments},
        configs={config.name: config.value or "" for config in topic.configs},
    )


def _configs(topic: CreatableTopic, context: RequestContext) -> list[CreatableTopicConfigs]:
    own = {config.name: config.value or "" for config in topic.configs}
    return [
        CreatableTopicConfigs(
            name=description.name,
            value=description.value,
            read_only=description.read_only,
            config_source=description.source,
            is_sensitive=description.is_sensitive,
        )
        for description in describe_topic(context.services.dynamic, topic.name, own)
    ]


def _failed(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message, configs=None
    )


def error_response(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    """The error on every topic."""
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=code, error_message=None, configs=None)
            for topic in request.topics
        ]
    )
