"""Read a group's stored offsets.

Versions:
    v0 offsets in ZooKeeper
    v1 offsets in the internal topic
    v2 an error for the group, null for all partitions
    v5 leader epochs (KIP-320)
    v6 flexible
    v7 only stable offsets (KIP-447)
    v8 several groups (KIP-709)
    v9 the new group protocol (KIP-848)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class OffsetFetchRequestTopic(Struct):
    name: str = wire("string", until=7)
    partition_indexes: list[int] = wire("[]int32", until=7)


class OffsetFetchRequestTopics(Struct):
    name: str = wire("string", since=8)
    partition_indexes: list[int] = wire("[]int32", since=8)


class OffsetFetchRequestGroup(Struct):
    group_id: str = wire("string", since=8)
    member_id: str | None = wire("string", since=9, nullable=9, default=None, ignorable=True)
    member_epoch: int = wire("int32", since=9, default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = wire(
        [OffsetFetchRequestTopics], since=8, nullable=8
    )


class OffsetFetchRequest(Request["OffsetFetchResponse"], api_key=9, versions=(0, 9), flexible=6):
    """Partitions of one group, from v8 on of many; null requests all partitions."""

    group_id: str = wire("string", until=7)
    topics: list[OffsetFetchRequestTopic] | None = wire(
        [OffsetFetchRequestTopic], until=7, nullable=2
    )
    groups: list[OffsetFetchRequestGroup] = wire([OffsetFetchRequestGroup], since=8)
    require_stable: bool = wire("bool", since=7)


class OffsetFetchResponsePartition(Struct):
    partition_index: int = wire("int32", until=7)
    committed_offset: int = wire("int64", until=7)
    committed_leader_epoch: int = wire("int32", since=5, until=7, default=-1, ignorable=True)
    metadata: str | None = wire("string", until=7, nullable=0)
    error_code: int = wire("int16", until=7)


class OffsetFetchResponseTopic(Struct):
    name: str = wire("string", until=7)
    partitions: list[OffsetFetchResponsePartition] = wire([OffsetFetchResponsePartition], until=7)


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = wire("int32", since=8)
    committed_offset: int = wire("int64", since=8)
    committed_leader_epoch: int = wire("int32", since=8, default=-1, ignorable=True)
    metadata: str | None = wire("string", since=8, nullable=8)
    error_code: int = wire("int16", since=8)


class OffsetFetchResponseTopics(Struct):
    name: str = wire("string", since=8)
    partitions: list[OffsetFetchResponsePartitions] = wire([OffsetFetchResponsePartitions], since=8)


class OffsetFetchResponseGroup(Struct):
    group_id: str = wire("string", since=8)
    topics: list[OffsetFetchResponseTopics] = wire([OffsetFetchResponseTopics], since=8)
    error_code: int = wire("int16", since=8)


class OffsetFetchResponse(Response, versions=(0, 9), flexible=6):
    """The committed offsets; -1 if there is no commit."""

    throttle_time_ms: int = wire("int32", since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = wire([OffsetFetchResponseTopic], until=7)
    error_code: int = wire("int16", since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = wire([OffsetFetchResponseGroup], since=8)
