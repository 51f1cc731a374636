"""Handle FindCoordinator: the leader of the partition that stores a group or a transactional id.

If the internal topic does not exist, it is created, and the client gets COORDINATOR_NOT_AVAILABLE,
which makes it retry.

Versions:
    v1 transactional ids; error message, throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 flexible
    v4 many keys (KIP-699)
    v5 TRANSACTION_ABORTABLE (KIP-890)
    v6 share groups (KIP-932)

Deliberately missing: share groups, which need KRaft.
"""

from collections.abc import Awaitable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from broker.api.authorization import (
    MESSAGES,
    authorize_cluster,
    authorize_group,
    authorize_transactional_id,
)
from broker.api.context import RequestContext
from broker.api.slices import SMALL, in_slices
from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import BrokerEndpoint
from broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from broker.security.acls import AclOperation
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

_FIRST_VERSION_OF_SHARE: Final = 6


class KeyType(IntEnum):
    """The kind of a key."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class _Found(NamedTuple):
    """The endpoint of a coordinator, or an error."""

    node_id: int = -1
    host: str = ""
    port: int = -1
    error: ErrorCode = ErrorCode.NONE


def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    """Look up one key up to version 3, many from version 4 on."""
    lookup = _Lookup(request.key_type, context)
    if context.api_version >= 4:
        keys = request.coordinator_keys
        if len(keys) > SMALL:
            return _find_many(lookup, keys)
        return FindCoordinatorResponse(coordinators=list(map(lookup.coordinator, keys)))
    found = lookup.find(request.key)
    return FindCoordinatorResponse(
        error_code=found.error,
        error_message=_message(found.error),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find_many(lookup: "_Lookup", keys: Sequence[str]) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=await in_slices(lookup.coordinator, keys))


class _Lookup:
    """Finds the coordinators of the keys of one request; each partition is looked up once."""

    def __init__(self, key_type: int, context: RequestContext) -> None:
        self._key_type = key_type
        self._context = context
        self._by_partition: dict[tuple[str, int], _Found] = {}

    def coordinator(self, key: str) -> Coordinator:
        """The coordinator of a key, as versions 4 and later return it."""
        return _coordinator(key, self.find(key))

    def find(self, key: str) -> _Found:
        """The endpoint of the coordinator of a key, or an error."""
        try:
            name = _partition(self._key_type, key, self._context)
        except ApiError as error:
            return _Found(error=error.code)
        found = self._by_partition.get(name)
        if found is None:
            found = self._by_partition[name] = _find(name, self._context)
        return found


def _find(name: tuple[str, int], context: RequestContext) -> _Found:
    try:
        endpoint = _endpoint(*name, context)
    except ApiError as error:
        return _Found(error=error.code)
    return _Found(endpoint.broker_id, endpoint.host, endpoint.port)


def _endpoint(topic_name: str, index: int, context: RequestContext) -> BrokerEndpoint:
    services = context.services
    topic = services.metadata.topics.get(topic_name)
    if topic is None:
        services.auto_creation.request_creation(topic_name)
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = topic.partitions.get(index)
    leader = None if partition is None else partition.leader
    for endpoint in services.metadata.brokers_of(context.peer.listener_name):
        if endpoint.broker_id == leader:
            return endpoint
    raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _partition(key_type: int, key: str, context: RequestContext) -> tuple[str, int]:
    """The internal topic, and the partition of it, that store the key."""
    if key_type == KeyType.GROUP:
        authorize_group(context, AclOperation.DESCRIBE, key)
        return OFFSETS_TOPIC, context.services.groups.partition_for(key)
    if key_type == KeyType.TRANSACTION:
        authorize_transactional_id(context, AclOperation.DESCRIBE, key)
        return TRANSACTION_STATE_TOPIC, context.services.transactions.partition_for(key)
    is_share = key_type == KeyType.SHARE and context.api_version >= _FIRST_VERSION_OF_SHARE
    if is_share:
        authorize_cluster(context, AclOperation.CLUSTER_ACTION)
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
    """The message; versions 1 to 3 always have one."""
    if code is ErrorCode.INVALID_REQUEST:
        return "The key type is unknown, or not allowed in this version."
    if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return "The coordinator is not available yet; retry."
    return MESSAGES.get(code, code.name)


def error_response(request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
    """The error without a coordinator; on every key, if the version has many."""
    if request.coordinator_keys:
        failed = [_coordinator(key, _Found(error=code)) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=failed)
    return FindCoordinatorResponse(
        error_code=code, error_message=_message(code), node_id=-1, port=-1
    )
