"""Handle CreatePartitions (KIP-195); controller only.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible
    v3 THROTTLING_QUOTA_EXCEEDED (KIP-599)

Deliberately missing: nothing.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final

from broker.api.authorization import unauthorized
from broker.api.context import RequestContext
from broker.api.controller_mutations import mutation_quota
from broker.controller.topic_plan import check_partition_count
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from broker.quota.client_quota_manager import ControllerMutationQuota
from broker.security.acls import AclOperation

_STRICT_QUOTA: Final = 3


async def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    """Add partitions to one topic after the other; a failure concerns only its topic.

    With timeout_ms 0 the result is REQUEST_TIMED_OUT, but the partitions are added anyway.
    """
    context.services.controller.check_active()
    denied = _denied(request, context)
    try:
        _check_partition_count(request, denied, context)
    except ApiError as error:
        return CreatePartitionsResponse(
            results=[_failed(topic.name, error.code, error.message) for topic in request.topics]
        )
    repeated = {n for n, times in Counter(t.name for t in request.topics).items() if times > 1}
    quota = mutation_quota(context, strict_since=_STRICT_QUOTA)
    results = [
        _failed(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
        if topic.name in repeated
        else _failed(
            topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed."
        )
        if topic.name in denied
        else await _grow(topic, request, context, quota)
        for topic in {topic.name: topic for topic in request.topics}.values()
    ]
    return CreatePartitionsResponse(
        throttle_time_ms=quota.throttle_ms if quota else 0, results=results
    )


def _denied(request: CreatePartitionsRequest, context: RequestContext) -> Collection[str]:
    return unauthorized(context, AclOperation.ALTER, {topic.name for topic in request.topics})


def _check_partition_count(
    request: CreatePartitionsRequest, denied: Collection[str], context: RequestContext
) -> None:
    """Raise if all topics together get more new partitions than one request may create."""
    topics = context.services.metadata.topics
    added = 0
    for topic in request.topics:
        known = topics.get(topic.name)
        if known is not None and topic.name not in denied:
            added += max(topic.count - len(known.partitions), 0)
    check_partition_count(added, context.services.dynamic.broker.max_partitions_per_request)


async def _grow(
    topic: CreatePartitionsTopic,
    request: CreatePartitionsRequest,
    context: RequestContext,
    quota: ControllerMutationQuota | None,
) -> CreatePartitionsTopicResult:
    manual = None if topic.assignments is None else [a.broker_ids for a in topic.assignments]
    try:
        if quota and not request.validate_only:
            await _record(topic, manual, context, quota)
        await context.services.controller.create_partitions(
            topic.name, topic.count, manual, validate_only=request.validate_only
        )
    except ApiError as error:
        is_throttled = error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        return _failed(topic.name, error.code, None if is_throttled else error.message)
    is_awaited = request.validate_only or request.timeout_ms > 0
    code = ErrorCode.NONE if is_awaited else ErrorCode.REQUEST_TIMED_OUT
    return CreatePartitionsTopicResult(name=topic.name, error_code=code)


async def _record(
    topic: CreatePartitionsTopic,
    manual: list[list[int]] | None,
    context: RequestContext,
    quota: ControllerMutationQuota,
) -> None:
    """Record new partitions, if the request is valid; ApiError if it is not, or is too much."""
    await context.services.controller.create_partitions(
        topic.name, topic.count, manual, validate_only=True
    )
    quota.record(topic.count - len(context.services.metadata.topics[topic.name].partitions))


def _failed(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def error_response(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    """The error on every topic."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code)
            for topic in request.topics
        ]
    )
