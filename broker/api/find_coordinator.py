"""Answers FindCoordinator: the leader of the partition that keeps a group or a transactional id.

While the internal topic does not exist, asking for its coordinator makes it come into being, and
the client is told to ask again.

Versions:
    v1 transactional ids
    v4 several keys (KIP-699)
    v6 share groups, which there are none of here
"""

from enum import IntEnum
from typing import Final, NamedTuple

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import BrokerEndpoint
from broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

_FIRST_VERSION_OF_SHARE: Final = 6


class KeyType(IntEnum):
    """What a key names."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class _Found(NamedTuple):
    """Where the coordinator is, or why that cannot be said."""

    node_id: int = -1
    host: str = ""
    port: int = -1
    error: ErrorCode = ErrorCode.NONE


def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    """One key before version 4, several from then on."""
    if context.api_version >= 4:
        keys = request.coordinator_keys
        coordinators = [_coordinator(key, _find(request.key_type, key, context)) for key in keys]
        return FindCoordinatorResponse(coordinators=coordinators)
    found = _find(request.key_type, request.key, context)
    return FindCoordinatorResponse(
        error_code=found.error,
        error_message=_message(found.error),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(key_type: int, key: str, context: RequestContext) -> _Found:
    try:
        endpoint = _endpoint(key_type, key, context)
    except ApiError as error:
        return _Found(error=error.code)
    return _Found(endpoint.broker_id, endpoint.host, endpoint.port)


def _endpoint(key_type: int, key: str, context: RequestContext) -> BrokerEndpoint:
    services = context.services
    topic_name, index = _partition(key_type, key, context)
    topic = services.metadata.topics.get(topic_name)
    if topic is None:
        services.auto_creation.request_creation(topic_name)
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader = topic.partitions[index].leader if index < len(topic.partitions) else None
    for endpoint in services.metadata.brokers_of(context.peer.listener_name):
        if endpoint.broker_id == leader:
            return endpoint
    raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _partition(key_type: int, key: str, context: RequestContext) -> tuple[str, int]:
    """The internal topic and the partition of it that keeps the key."""
    if key_type == KeyType.GROUP:
        return OFFSETS_TOPIC, context.services.groups.partition_for(key)
    if key_type == KeyType.TRANSACTION:
        return TRANSACTION_STATE_TOPIC, context.services.transactions.partition_for(key)
    is_share = key_type == KeyType.SHARE and context.api_version >= _FIRST_VERSION_OF_SHARE
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_share else ErrorCode.INVALID_REQUEST
    raise ApiError(code)


def _coordinator(key: str, found: _Found) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
        error_code=found.error,
    )


def _message(code: ErrorCode) -> str:
    """Versions 1 to 3 always say something."""
    if code is ErrorCode.INVALID_REQUEST:
        return "The key type is unknown, or not allowed in this version."
    if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return "There is no coordinator yet; ask again."
    return code.name


def error_response(request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
    """The error, and no coordinator; on every key, of a version that has several."""
    if request.coordinator_keys:
        failed = [_coordinator(key, _Found(error=code)) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=failed)
    return FindCoordinatorResponse(
        error_code=code, error_message=_message(code), node_id=-1, port=-1
    )
