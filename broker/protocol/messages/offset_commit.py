"""Store a group's offsets.

Versions:
    v0 offsets in ZooKeeper
    v1 offsets in the internal topic, with a timestamp
    v2 retention time
    v5 retention is the broker's (KIP-211)
    v6 leader epochs (KIP-320)
    v7 static members (KIP-345)
    v8 flexible
    v9 the new group protocol (KIP-848)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class OffsetCommitRequestPartition(Struct):
    partition_index: int = wire("int32")
    committed_offset: int = wire("int64")
    committed_leader_epoch: int = wire("int32", since=6, default=-1, ignorable=True)
    commit_timestamp: int = wire("int64", since=1, until=1, default=-1)
    committed_metadata: str | None = wire("string", nullable=0)


class OffsetCommitRequestTopic(Struct):
    name: str = wire("string")
    partitions: list[OffsetCommitRequestPartition] = wire([OffsetCommitRequestPartition])


class OffsetCommitRequest(Request["OffsetCommitResponse"], api_key=8, versions=(0, 9), flexible=8):
    """Offsets to store for one group."""

    group_id: str = wire("string")
    generation_id_or_member_epoch: int = wire("int32", since=1, default=-1, ignorable=True)
    member_id: str = wire("string", since=1, ignorable=True)
    group_instance_id: str | None = wire("string", since=7, nullable=7, default=None)
    retention_time_ms: int = wire("int64", since=2, until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = wire([OffsetCommitRequestTopic])


class OffsetCommitResponsePartition(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


class OffsetCommitResponseTopic(Struct):
    name: str = wire("string")
    partitions: list[OffsetCommitResponsePartition] = wire([OffsetCommitResponsePartition])


class OffsetCommitResponse(Response, versions=(0, 9), flexible=8):
    """The error of each partition."""

    throttle_time_ms: int = wire("int32", since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = wire([OffsetCommitResponseTopic])
