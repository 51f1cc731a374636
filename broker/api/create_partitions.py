"""Answers CreatePartitions (KIP-195); only the controller does."""

from collections import Counter

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    """Add partitions to one topic after the other; a failure concerns only its topic.

    A client that does not wait (a timeout of 0) is told REQUEST_TIMED_OUT; they are added anyway.
    """
    context.services.controller.check_active()
    repeated = {n for n, times in Counter(t.name for t in request.topics).items() if times > 1}
    results = [
        CreatePartitionsTopicResult(
            name=topic.name,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Duplicate topic in request.",
        )
        if topic.name in repeated
        else await _grow(topic, request, context)
        for topic in {topic.name: topic for topic in request.topics}.values()
    ]
    return CreatePartitionsResponse(results=results)


async def _grow(
    topic: CreatePartitionsTopic, request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsTopicResult:
    manual = None if topic.assignments is None else [a.broker_ids for a in topic.assignments]
    try:
        await context.services.controller.create_partitions(
            topic.name, topic.count, manual, validate_only=request.validate_only
        )
    except ApiError as error:
        return CreatePartitionsTopicResult(
            name=topic.name, error_code=error.code, error_message=error.message
        )
    is_awaited = request.validate_only or request.timeout_ms > 0
    code = ErrorCode.NONE if is_awaited else ErrorCode.REQUEST_TIMED_OUT
    return CreatePartitionsTopicResult(name=topic.name, error_code=code)


def error_response(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    """The error on every topic."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code)
            for topic in request.topics
        ]
    )
