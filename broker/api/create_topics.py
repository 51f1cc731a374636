"""Answers CreateTopics; only the controller does.

From version 5 on the answer shows what was made: partitions, replicas and the configuration with
its sources (KIP-525). With `validate_only` everything is checked and nothing is made. A client that
does not wait (a timeout of 0) is told REQUEST_TIMED_OUT, and its topics are made nevertheless; so
is one whose topic cannot be led, because none of its replicas is alive.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from broker.api.context import RequestContext, Services
from broker.config.description import ConfigSource, describe_topic
from broker.config.topic import TopicConfig, validate_topic_config
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_METADATA_LOG: Final = "__cluster_metadata"
"""A KRaft cluster's own topic, whose name is kept free everywhere."""


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Create one after the other; one that cannot be made does not keep the others."""
    context.services.controller.check_active()
    times = Counter(topic.name for topic in request.topics)
    return CreateTopicsResponse(
        topics=[
            await _answer(topic, times[topic.name] > 1, request, context.services)
            for topic in request.topics
        ]
    )


async def _answer(
    topic: CreatableTopic, is_repeated: bool, request: CreateTopicsRequest, services: Services
) -> CreatableTopicResult:
    try:
        if topic.name == _METADATA_LOG:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Creation of internal topic {_METADATA_LOG} is prohibited.",
            )
        if is_repeated:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
        return await _create(topic, request, services)
    except ApiError as error:
        return _failed(topic.name, error.code, error.message)


async def _create(
    topic: CreatableTopic, request: CreateTopicsRequest, services: Services
) -> CreatableTopicResult:
    created = await services.controller.create_topic(
        _plan(topic), validate_only=request.validate_only
    )
    if not request.validate_only and (request.timeout_ms <= 0 or not created.is_led):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=created.topic_id,
            error_code=ErrorCode.REQUEST_TIMED_OUT,
            error_message=None,
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=created.topic_id,
        error_message=None,
        num_partitions=len(created.assignment),
        replication_factor=len(created.assignment[0]),
        configs=_configs(created.configs, services),
    )


def _plan(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        manual_assignment={a.partition_index: a.broker_ids for a in topic.assignments},
        configs={config.name: config.value for config in topic.configs},
    )


def _configs(own: Mapping[str, str], services: Services) -> list[CreatableTopicConfigs]:
    """Every setting of the topic; with validate_only there is none yet that could be described."""
    config = validate_topic_config(services.dynamic.broker, own)
    described = {found.name: found for found in describe_topic(services.dynamic, "")}
    return [
        CreatableTopicConfigs(
            name=key,
            value=setting.text_of(getattr(config, key.replace(".", "_"))),
            config_source=(
                ConfigSource.DYNAMIC_TOPIC_CONFIG if key in own else described[key].source
            ),
        )
        for key, setting in TopicConfig.settings.items()
    ]


def _failed(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def error_response(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    """The error on every topic."""
    return CreateTopicsResponse(
        topics=[_failed(topic.name, code, None) for topic in request.topics]
    )
