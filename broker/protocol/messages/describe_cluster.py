"""Cluster id, controller and brokers (KIP-700).

Versions:
    v1 controllers as endpoints (KIP-919)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DescribeClusterRequest(
    Request["DescribeClusterResponse"], api_key=60, versions=(0, 1), flexible=0
):
    """The endpoint type: brokers or controllers."""

    include_cluster_authorized_operations: bool = wire("bool")
    endpoint_type: int = wire("int8", since=1, default=1)


class DescribeClusterBroker(Struct):
    broker_id: int = wire("int32")
    host: str = wire("string")
    port: int = wire("int32")
    rack: str | None = wire("string", nullable=0, default=None)


class DescribeClusterResponse(Response, versions=(0, 1), flexible=0):
    """The cluster."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0, default=None)
    endpoint_type: int = wire("int8", since=1, default=1)
    cluster_id: str = wire("string")
    controller_id: int = wire("int32", default=-1)
    brokers: list[DescribeClusterBroker] = wire([DescribeClusterBroker])
    cluster_authorized_operations: int = wire("int32", default=-0x80000000)
