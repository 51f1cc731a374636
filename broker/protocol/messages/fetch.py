"""Read record batches from partitions; followers replicate with it too.

Versions:
    v3 a limit for the whole response (KIP-74)
    v4 isolation level, aborted transactions (KIP-98)
    v5 log start offset (KIP-107)
    v7 sessions (KIP-227)
    v9 fencing by leader epoch (KIP-320)
    v10 zstd (KIP-110)
    v11 fetch from the closest replica (KIP-392)
    v12 flexible; divergence by last fetched epoch (KIP-595)
    v13 topic ids (KIP-516)
    v15 replica state with broker epoch (KIP-903)
    v16 the new leader's address (KIP-951)
    v17 directory ids (KIP-853)
"""

from broker.model import Uuid
from broker.protocol.primitives import Records
from broker.protocol.schema import Request, Response, Struct, wire


class ReplicaState(Struct):
    replica_id: int = wire("int32", since=15, default=-1)
    replica_epoch: int = wire("int64", since=15, default=-1)


class FetchPartition(Struct):
    partition: int = wire("int32")
    current_leader_epoch: int = wire("int32", since=9, default=-1, ignorable=True)
    fetch_offset: int = wire("int64")
    last_fetched_epoch: int = wire("int32", since=12, default=-1)
    log_start_offset: int = wire("int64", since=5, default=-1, ignorable=True)
    partition_max_bytes: int = wire("int32")
    replica_directory_id: Uuid = wire("uuid", since=17, tag=0, ignorable=True)


class FetchTopic(Struct):
    topic: str = wire("string", until=12, ignorable=True)
    topic_id: Uuid = wire("uuid", since=13, ignorable=True)
    partitions: list[FetchPartition] = wire([FetchPartition])


class ForgottenTopic(Struct):
    topic: str = wire("string", since=7, until=12, ignorable=True)
    topic_id: Uuid = wire("uuid", since=13, ignorable=True)
    partitions: list[int] = wire("[]int32", since=7)


class FetchRequest(Request["FetchResponse"], api_key=1, versions=(0, 17), flexible=12):
    """Partitions with their offsets, limits, and how long to wait for min_bytes."""

    cluster_id: str | None = wire(
        "string", since=12, nullable=12, default=None, tag=0, ignorable=True
    )
    replica_id: int = wire("int32", until=14, default=-1)
    replica_state: ReplicaState = wire(ReplicaState, since=15, tag=1)
    max_wait_ms: int = wire("int32")
    min_bytes: int = wire("int32")
    max_bytes: int = wire("int32", since=3, default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = wire("int8", since=4, ignorable=True)
    session_id: int = wire("int32", since=7, ignorable=True)
    session_epoch: int = wire("int32", since=7, default=-1, ignorable=True)
    topics: list[FetchTopic] = wire([FetchTopic])
    forgotten_topics_data: list[ForgottenTopic] = wire([ForgottenTopic], since=7)
    rack_id: str = wire("string", since=11, ignorable=True)


class EpochEndOffset(Struct):
    epoch: int = wire("int32", since=12, default=-1)
    end_offset: int = wire("int64", since=12, default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = wire("int32", since=12, default=-1)
    leader_epoch: int = wire("int32", since=12, default=-1)


class SnapshotId(Struct):
    end_offset: int = wire("int64", default=-1)
    epoch: int = wire("int32", default=-1)


class AbortedTransaction(Struct):
    producer_id: int = wire("int64", since=4)
    first_offset: int = wire("int64", since=4)


class PartitionData(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")
    high_watermark: int = wire("int64")
    last_stable_offset: int = wire("int64", since=4, default=-1, ignorable=True)
    log_start_offset: int = wire("int64", since=5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = wire(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = wire(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = wire(
        [AbortedTransaction], since=4, nullable=4, ignorable=True
    )
    preferred_read_replica: int = wire("int32", since=11, default=-1)
    records: Records | None = wire("records", nullable=0)


class FetchableTopicResponse(Struct):
    topic: str = wire("string", until=12, ignorable=True)
    topic_id: Uuid = wire("uuid", since=13, ignorable=True)
    partitions: list[PartitionData] = wire([PartitionData])


class NodeEndpoint(Struct):
    node_id: int = wire("int32", since=16)
    host: str = wire("string", since=16)
    port: int = wire("int32", since=16)
    rack: str | None = wire("string", since=16, nullable=16, default=None)


class FetchResponse(Response, versions=(0, 17), flexible=12):
    """The batches, unchanged from the log."""

    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    error_code: int = wire("int16", since=7, ignorable=True)
    session_id: int = wire("int32", since=7)
    responses: list[FetchableTopicResponse] = wire([FetchableTopicResponse])
    node_endpoints: list[NodeEndpoint] = wire([NodeEndpoint], since=16, tag=0)
