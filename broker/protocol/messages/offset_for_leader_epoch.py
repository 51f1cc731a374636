"""Where a leader epoch ends in the leader's log: followers truncate by it (KIP-101, KIP-279).

Versions:
    v1 the epoch found
    v2 fencing (KIP-320)
    v3 replica id
    v4 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class OffsetForLeaderPartition(Struct):
    partition: int = wire("int32")
    current_leader_epoch: int = wire("int32", since=2, default=-1, ignorable=True)
    leader_epoch: int = wire("int32")


class OffsetForLeaderTopic(Struct):
    topic: str = wire("string")
    partitions: list[OffsetForLeaderPartition] = wire([OffsetForLeaderPartition])


class OffsetForLeaderEpochRequest(
    Request["OffsetForLeaderEpochResponse"], api_key=23, versions=(0, 4), flexible=4
):
    """Epochs to look up."""

    replica_id: int = wire("int32", since=3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = wire([OffsetForLeaderTopic])


class EpochEndOffset(Struct):
    error_code: int = wire("int16")
    partition: int = wire("int32")
    leader_epoch: int = wire("int32", since=1, default=-1, ignorable=True)
    end_offset: int = wire("int64", default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = wire("string")
    partitions: list[EpochEndOffset] = wire([EpochEndOffset])


class OffsetForLeaderEpochResponse(Response, versions=(0, 4), flexible=4):
    """The end offset of the largest epoch up to the requested one."""

    throttle_time_ms: int = wire("int32", since=2, ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = wire([OffsetForLeaderTopicResult])
