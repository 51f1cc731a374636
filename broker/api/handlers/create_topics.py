"""Handle CreateTopics; controller only.

With `validate_only` everything is checked and nothing is created. A request with timeout_ms 0 gets
REQUEST_TIMED_OUT, but its topics are created anyway. So does a request whose topic gets no leader
because none of its replicas is alive.

Versions:
    v1 validate_only
    v2 throttle time
    v3 clients wait out a throttle time themselves, after the response (KIP-219)
    v4 the broker's defaults for partitions and replicas (KIP-464)
    v5 flexible; partitions, replicas and configs of the created topic in the response (KIP-525)
    v6 THROTTLING_QUOTA_EXCEEDED (KIP-599)
    v7 topic ids (KIP-516)

Deliberately missing: nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from broker.api.authorization import is_authorized_on_cluster, unauthorized
from broker.api.context import RequestContext, Services
from broker.api.controller_mutations import mutation_quota
from broker.config.description import ConfigSource, describe_topic
from broker.config.topic import TopicConfig, validate_topic_config
from broker.controller.topic_admin import NewTopic
from broker.controller.topic_plan import BROKER_DEFAULT, check_partition_count
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.quota.client_quota_manager import ControllerMutationQuota
from broker.security.acls import AclOperation

_STRICT_QUOTA: Final = 6
_METADATA_LOG: Final = "__cluster_metadata"
"""The metadata topic of KRaft clusters; reserved in ZooKeeper clusters too."""


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Create one topic after the other; a failure concerns only its topic."""
    context.services.controller.check_active()
    denied, hidden = _denied(request, context), _hidden(request, context)
    allowed = [topic for topic in request.topics if topic.name not in denied]
    try:
        _check_partition_count(allowed, context.services)
    except ApiError as error:
        return CreateTopicsResponse(
            topics=[_failed(topic.name, error.code, error.message) for topic in request.topics]
        )
    times = Counter(topic.name for topic in request.topics)
    quota = mutation_quota(context, strict_since=_STRICT_QUOTA)
    creation = _Creation(request, context, times, denied, hidden, quota)
    topics = [await _answer(topic, creation) for topic in request.topics]
    return CreateTopicsResponse(throttle_time_ms=quota.throttle_ms if quota else 0, topics=topics)


class _Creation(NamedTuple):
    """What the topics of one request share."""

    request: CreateTopicsRequest
    context: RequestContext
    times: Mapping[str, int]
    """How often each topic is named."""
    denied: Collection[str]
    """Topics that the client may not create."""
    hidden: Collection[str]
    """Topics whose configs the client may not see in the response."""
    quota: ControllerMutationQuota | None


def _denied(request: CreateTopicsRequest, context: RequestContext) -> Collection[str]:
    if is_authorized_on_cluster(context, AclOperation.CREATE, quiet=True):
        return ()
    return unauthorized(context, AclOperation.CREATE, _names(request))


def _hidden(request: CreateTopicsRequest, context: RequestContext) -> Collection[str]:
    return unauthorized(context, AclOperation.DESCRIBE_CONFIGS, _names(request), quiet=True)


def _names(request: CreateTopicsRequest) -> set[str]:
    return {topic.name for topic in request.topics} - {_METADATA_LOG}


def _check_partition_count(topics: Iterable[CreatableTopic], services: Services) -> None:
    """Raise if all topics together have more partitions than one request may create."""
    config = services.dynamic.broker
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == BROKER_DEFAULT:
            total += config.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    check_partition_count(total, config.max_partitions_per_request)


async def _answer(topic: CreatableTopic, creation: _Creation) -> CreatableTopicResult:
    config_error = ErrorCode.NONE
    if topic.name in creation.hidden:
        config_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    try:
        _check(topic.name, creation)
    except ApiError as error:
        return _failed(topic.name, error.code, error.message, config_error)
    try:
        if creation.quota and not creation.request.validate_only:
            controller = creation.context.services.controller
            planned = await controller.create_topic(_plan(topic), validate_only=True)
            creation.quota.record(len(planned.assignment))
        created = await _create(topic, creation.request, creation.context.services)
    except ApiError as error:
        is_throttled = error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        return _failed(topic.name, error.code, None if is_throttled else error.message)
    if config_error and not created.error_code:
        return CreatableTopicResult(
            name=topic.name, error_message=None, topic_config_error_code=config_error
        )
    return created


def _check(name: str, creation: _Creation) -> None:
    if name == _METADATA_LOG:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {_METADATA_LOG} is prohibited."
        )
    if creation.times[name] > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
    if name in creation.denied:
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


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
    """All configs of the new topic; with validate_only there is no topic to describe."""
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


def _failed(
    name: str, code: ErrorCode, message: str | None, config_error: ErrorCode = ErrorCode.NONE
) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=code, error_message=message, topic_config_error_code=config_error
    )


def error_response(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    """The error on every topic."""
    return CreateTopicsResponse(
        topics=[_failed(topic.name, code, None) for topic in request.topics]
    )
