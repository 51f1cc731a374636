"""Answers DeleteTopics; only the controller does. By name, from version 6 also by topic id."""

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.model import Uuid
from broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_FIRST_VERSION_OF_IDS = 6


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    """Delete one after the other; one that cannot be deleted does not keep the others."""
    asked = request.topics
    if context.api_version < _FIRST_VERSION_OF_IDS:
        asked = [DeleteTopicState(name=name) for name in request.topic_names]
    if not context.services.config.delete_topic_enable:
        return _all_failed(asked, ErrorCode.TOPIC_DELETION_DISABLED)
    return DeleteTopicsResponse(responses=[await _delete(topic, context) for topic in asked])


async def _delete(topic: DeleteTopicState, context: RequestContext) -> DeletableTopicResult:
    metadata = context.services.metadata
    name, topic_id = topic.name, topic.topic_id
    try:
        if name is not None and topic_id != Uuid.ZERO:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified."
            )
        if name is None:
            name = metadata.names.get(topic_id)
            if name is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic_id}")
        known = metadata.topics.get(name)
        await context.services.controller.delete_topic(name)
    except ApiError as error:
        return DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
        )
    return DeletableTopicResult(name=name, topic_id=known.topic_id if known else topic_id)


def _all_failed(topics: list[DeleteTopicState], code: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code)
            for topic in topics
        ]
    )


def error_response(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    """The error on every topic."""
    named = [DeleteTopicState(name=name) for name in request.topic_names]
    return _all_failed([*request.topics, *named], code)
