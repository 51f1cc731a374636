"""Handle DeleteTopics; controller only.

Versions:
    v1 throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 TOPIC_DELETION_DISABLED
    v4 flexible
    v5 error messages, THROTTLING_QUOTA_EXCEEDED (KIP-599)
    v6 by topic id (KIP-516)

Deliberately missing: nothing.
"""

from broker.api.authorization import unauthorized
from broker.api.context import RequestContext
from broker.api.controller_mutations import mutation_quota
from broker.errors import ApiError, ErrorCode
from broker.model import Uuid
from broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from broker.quota.client_quota_manager import ControllerMutationQuota
from broker.security.acls import AclOperation

_FIRST_VERSION_OF_DISABLED = 3
_STRICT_QUOTA = 5


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    """Delete one topic after the other; a failure concerns only its topic.

    With timeout_ms 0 the result is REQUEST_TIMED_OUT, but the topics are deleted anyway.
    """
    context.services.controller.check_active()
    asked = _asked(request)
    if not context.services.config.delete_topic_enable:
        is_new = context.api_version >= _FIRST_VERSION_OF_DISABLED
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_new else ErrorCode.INVALID_REQUEST
        return _all_failed(asked, code)
    if any(topic.name is not None and topic.topic_id != Uuid.ZERO for topic in asked):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified."
        )
    metadata = context.services.metadata
    found = [
        (topic, metadata.names.get(topic.topic_id) if topic.name is None else topic.name)
        for topic in asked
    ]
    names = dict.fromkeys(name for _, name in found if name is not None)
    hidden = unauthorized(context, AclOperation.DESCRIBE, names)
    denied = unauthorized(context, AclOperation.DELETE, names)
    by_hidden_id = {n for topic, n in found if n in hidden and topic.topic_id != Uuid.ZERO}
    quota = mutation_quota(context, strict_since=_STRICT_QUOTA)
    outcomes = {
        name: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if name in denied or name in by_hidden_id
        else await _delete(name, request.timeout_ms, context, quota)
        for name in names
    }
    return DeleteTopicsResponse(
        throttle_time_ms=quota.throttle_ms if quota else 0,
        responses=[
            DeletableTopicResult(
                # A client that may not describe a topic does not learn the name of its id.
                name=None if topic.topic_id != Uuid.ZERO and name in hidden else name,
                topic_id=topic.topic_id,
                error_code=ErrorCode.UNKNOWN_TOPIC_ID if name is None else outcomes[name],
            )
            for topic, name in found
        ],
    )


def _asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """The topics of the request, from the field that its version uses."""
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]


async def _delete(
    name: str, timeout_ms: int, context: RequestContext, quota: ControllerMutationQuota | None
) -> ErrorCode:
    topic = context.services.metadata.topics.get(name)
    if topic is None:
        # As in Kafka: a topic none of whose partitions ever had a leader is not in the metadata.
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        if quota:
            quota.record(len(topic.partitions))
        await context.services.controller.delete_topic(name, timeout_ms)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE if timeout_ms > 0 else ErrorCode.REQUEST_TIMED_OUT


def _all_failed(topics: list[DeleteTopicState], code: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code)
            for topic in topics
        ]
    )


def error_response(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    """The error on every topic."""
    return _all_failed(_asked(request), code)
