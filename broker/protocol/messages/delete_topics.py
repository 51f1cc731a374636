"""Delete topics.

Versions:
    v1 throttle time
    v4 flexible
    v5 error messages, THROTTLING_QUOTA_EXCEEDED (KIP-599)
    v6 topic ids (KIP-516)
"""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class DeleteTopicState(Struct):
    name: str | None = wire("string", since=6, nullable=6, default=None)
    topic_id: Uuid = wire("uuid", since=6)


class DeleteTopicsRequest(Request["DeleteTopicsResponse"], api_key=20, versions=(0, 6), flexible=4):
    """Topics by name, from v6 also by id."""

    topics: list[DeleteTopicState] = wire([DeleteTopicState], since=6)
    topic_names: list[str] = wire("[]string", until=5, ignorable=True)
    timeout_ms: int = wire("int32")


class DeletableTopicResult(Struct):
    name: str | None = wire("string", nullable=6)
    topic_id: Uuid = wire("uuid", since=6, ignorable=True)
    error_code: int = wire("int16")
    error_message: str | None = wire("string", since=5, nullable=5, default=None, ignorable=True)


class DeleteTopicsResponse(Response, versions=(0, 6), flexible=4):
    """The result of each."""

    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    responses: list[DeletableTopicResult] = wire([DeletableTopicResult])
