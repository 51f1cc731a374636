"""Which broker coordinates a group or a transactional id.

Versions:
    v1 transactional ids
    v3 flexible
    v4 several keys (KIP-699)
    v5 TRANSACTION_ABORTABLE (KIP-890)
    v6 share groups (KIP-932)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class FindCoordinatorRequest(
    Request["FindCoordinatorResponse"], api_key=10, versions=(0, 6), flexible=3
):
    """The group (key type 0) or transactional id (1) to find."""

    key: str = wire("string", until=3)
    key_type: int = wire("int8", since=1)
    coordinator_keys: list[str] = wire("[]string", since=4)


class Coordinator(Struct):
    key: str = wire("string", since=4)
    node_id: int = wire("int32", since=4)
    host: str = wire("string", since=4)
    port: int = wire("int32", since=4)
    error_code: int = wire("int16", since=4)
    error_message: str | None = wire("string", since=4, nullable=4, ignorable=True)


class FindCoordinatorResponse(Response, versions=(0, 6), flexible=3):
    """The coordinator's address."""

    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    error_code: int = wire("int16", until=3)
    error_message: str | None = wire("string", since=1, until=3, nullable=1, ignorable=True)
    node_id: int = wire("int32", until=3)
    host: str = wire("string", until=3)
    port: int = wire("int32", until=3)
    coordinators: list[Coordinator] = wire([Coordinator], since=4)
