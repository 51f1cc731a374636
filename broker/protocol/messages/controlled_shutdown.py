"""A broker asks the controller to move leadership away before it stops.

Versions:
    v0 has the oldest request header, without client id
    v2 broker epoch (KIP-380)
    v3 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class ControlledShutdownRequest(
    Request["ControlledShutdownResponse"], api_key=7, versions=(0, 3), flexible=3
):
    """The broker that is about to stop."""

    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64", since=2, default=-1, ignorable=True)


class RemainingPartition(Struct):
    topic_name: str = wire("string")
    partition_index: int = wire("int32")


class ControlledShutdownResponse(Response, versions=(0, 3), flexible=3):
    """The partitions it still leads."""

    error_code: int = wire("int16")
    remaining_partitions: list[RemainingPartition] = wire([RemainingPartition])
