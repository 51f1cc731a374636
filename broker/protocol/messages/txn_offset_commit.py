"""Store a group's offsets as part of a transaction (KIP-98).

Versions:
    v2 leader epochs (KIP-320)
    v3 flexible; member fencing (KIP-447)
    v4 TRANSACTION_ABORTABLE (KIP-890)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = wire("int32")
    committed_offset: int = wire("int64")
    committed_leader_epoch: int = wire("int32", since=2, default=-1, ignorable=True)
    committed_metadata: str | None = wire("string", nullable=0)


class TxnOffsetCommitRequestTopic(Struct):
    name: str = wire("string")
    partitions: list[TxnOffsetCommitRequestPartition] = wire([TxnOffsetCommitRequestPartition])


class TxnOffsetCommitRequest(
    Request["TxnOffsetCommitResponse"], api_key=28, versions=(0, 4), flexible=3
):
    """Offsets that become valid when the transaction commits."""

    transactional_id: str = wire("string")
    group_id: str = wire("string")
    producer_id: int = wire("int64")
    producer_epoch: int = wire("int16")
    generation_id: int = wire("int32", since=3, default=-1)
    member_id: str = wire("string", since=3)
    group_instance_id: str | None = wire("string", since=3, nullable=3, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = wire([TxnOffsetCommitRequestTopic])


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


class TxnOffsetCommitResponseTopic(Struct):
    name: str = wire("string")
    partitions: list[TxnOffsetCommitResponsePartition] = wire([TxnOffsetCommitResponsePartition])


class TxnOffsetCommitResponse(Response, versions=(0, 4), flexible=3):
    """The error of each partition."""

    throttle_time_ms: int = wire("int32")
    topics: list[TxnOffsetCommitResponseTopic] = wire([TxnOffsetCommitResponseTopic])
