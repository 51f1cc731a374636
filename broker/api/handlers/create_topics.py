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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from broker.api.authorization import is_authorized_on_cluster, unauthorized
from broker.api.context import RequestContext, Services
from broker.api.controller_mutations import mutation_quota
from broker.config.broker import BrokerConfig
from broker.config.description import ConfigSource, describe_topic
from broker.config.topic import TopicConfig, validate_topic_config
from broker.controller.topic_admin import CreatedTopic, NewTopic
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
_SLICE_PARTITIONS: Final = 200
"""Topics are created together until they have this many partitions. A slice shares transactions,
requests to brokers and one flush of the file system, which cost most of the time; between two
slices the controller can process other events."""
_METADATA_LOG: Final = "__cluster_metadata"
"""The metadata topic of KRaft clusters; reserved in ZooKeeper clusters too."""


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Create the topics in slices; a failure concerns only its topic."""
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
    creation = _Creation(request, context, times, denied, hidden, quota, described={})
    topics = [
        result
        for topics in _slices(request.topics, context.services)
        for result in await _answer(topics, creation)
    ]
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
    described: dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]]
    """The configs in the response, by the topic's own configs."""


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
    total = sum(_num_partitions(topic, config) for topic in topics)
    check_partition_count(total, config.max_partitions_per_request)


def _num_partitions(topic: CreatableTopic, config: BrokerConfig) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == BROKER_DEFAULT:
        return config.num_partitions
    return max(topic.num_partitions, 0)


def _slices(
    topics: Iterable[CreatableTopic], services: Services
) -> Iterator[Sequence[CreatableTopic]]:
    """The topics, in parts that are each created in one event of the controller."""
    config = services.dynamic.broker
    part: list[CreatableTopic] = []
    size = 0
    for topic in topics:
        part.append(topic)
        size += max(_num_partitions(topic, config), 1)
        if size >= _SLICE_PARTITIONS:
            yield part
            part, size = [], 0
    if part:
        yield part


async def _answer(
    topics: Sequence[CreatableTopic], creation: _Creation
) -> list[CreatableTopicResult]:
    """The results of one slice, in the order of its topics."""
    results: dict[str, CreatableTopicResult] = {}
    valid: dict[str, NewTopic] = {}
    for topic in topics:
        try:
            _check(topic.name, creation)
        except ApiError as error:
            # A repeated topic fails as often as it is named, always in the same way.
            hidden = _config_error(topic.name, creation)
            results[topic.name] = _failed(topic.name, error.code, error.message, hidden)
        else:
            valid[topic.name] = _plan(topic)
    for name, outcome in (await _outcomes(valid, creation)).items():
        results[name] = _result(name, outcome, creation)
    return [results[topic.name] for topic in topics]


def _config_error(name: str, creation: _Creation) -> ErrorCode:
    if name in creation.hidden:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE


async def _outcomes(
    topics: Mapping[str, NewTopic], creation: _Creation
) -> dict[str, CreatedTopic | ApiError]:
    """Create topics, or validate them with `validate_only`."""
    outcomes: dict[str, CreatedTopic | ApiError] = {}
    controller, quota = creation.context.services.controller, creation.quota
    accepted = dict(topics)
    if creation.request.validate_only or quota:
        for name, new in topics.items():
            try:
                outcomes[name] = planned = await controller.validate_topic(new)
                if quota and not creation.request.validate_only:
                    quota.record(len(planned.assignment))
            except ApiError as error:
                outcomes[name] = error
                del accepted[name]
    if not creation.request.validate_only and accepted:
        try:
            created = await controller.create_topics(list(accepted.values()))
        except ApiError as error:
            created = [error] * len(accepted)
        outcomes |= zip(accepted, created, strict=True)
    return outcomes


def _result(
    name: str, outcome: CreatedTopic | ApiError, creation: _Creation
) -> CreatableTopicResult:
    request = creation.request
    if isinstance(outcome, ApiError):
        is_throttled = outcome.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        return _failed(name, outcome.code, None if is_throttled else outcome.message)
    if not request.validate_only and (request.timeout_ms <= 0 or not outcome.is_led):
        return CreatableTopicResult(
            name=name,
            topic_id=outcome.topic_id,
            error_code=ErrorCode.REQUEST_TIMED_OUT,
            error_message=None,
        )
    if hidden := _config_error(name, creation):
        return CreatableTopicResult(name=name, error_message=None, topic_config_error_code=hidden)
    return CreatableTopicResult(
        name=name,
        topic_id=outcome.topic_id,
        error_message=None,
        num_partitions=len(outcome.assignment),
        replication_factor=len(outcome.assignment[0]),
        configs=_configs(outcome.configs, creation),
    )


def _check(name: str, creation: _Creation) -> None:
    if name == _METADATA_LOG:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {_METADATA_LOG} is prohibited."
        )
    if creation.times[name] > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
    if name in creation.denied:
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def _plan(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        manual_assignment={a.partition_index: a.broker_ids for a in topic.assignments},
        configs={config.name: config.value for config in topic.configs},
    )


def _configs(own: Mapping[str, str], creation: _Creation) -> list[CreatableTopicConfigs]:
    """All configs of a topic; most topics of a large request have the same ones."""
    key = tuple(sorted(own.items()))
    if key not in creation.described:
        creation.described[key] = _describe(own, creation.context.services)
    return creation.described[key]


def _describe(own: Mapping[str, str], services: Services) -> list[CreatableTopicConfigs]:
    config = validate_topic_config(services.dynamic.broker, own)
    # With validate_only there is no topic to describe.
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
