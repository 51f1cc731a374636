"""Append record batches to partitions.

Versions:
    v1 throttle time
    v2 message format 1 (timestamps)
    v3 message format 2, transactional id (KIP-98)
    v5 log start offset
    v7 zstd (KIP-110)
    v8 errors per record (KIP-467)
    v9 flexible
    v10 the new leader with NOT_LEADER_OR_FOLLOWER (KIP-951)
    v11 TRANSACTION_ABORTABLE (KIP-890)
"""

from broker.protocol.primitives import Records
from broker.protocol.schema import Request, Response, Struct, wire


class PartitionProduceData(Struct):
    index: int = wire("int32")
    records: Records | None = wire("records", nullable=0)


class TopicProduceData(Struct):
    name: str = wire("string")
    partition_data: list[PartitionProduceData] = wire([PartitionProduceData])


class ProduceRequest(Request["ProduceResponse"], api_key=0, versions=(0, 11), flexible=9):
    """Batches for partitions this broker leads; with acks=0 no response follows."""

    transactional_id: str | None = wire("string", since=3, nullable=3, default=None)
    acks: int = wire("int16")
    timeout_ms: int = wire("int32")
    topic_data: list[TopicProduceData] = wire([TopicProduceData])


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = wire("int32", since=8)
    batch_index_error_message: str | None = wire("string", since=8, nullable=8, default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = wire("int32", since=10, default=-1)
    leader_epoch: int = wire("int32", since=10, default=-1)


class PartitionProduceResponse(Struct):
    index: int = wire("int32")
    error_code: int = wire("int16")
    base_offset: int = wire("int64")
    log_append_time_ms: int = wire("int64", since=2, default=-1, ignorable=True)
    log_start_offset: int = wire("int64", since=5, default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = wire(
        [BatchIndexAndErrorMessage], since=8, ignorable=True
    )
    error_message: str | None = wire("string", since=8, nullable=8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, since=10, tag=0)


class TopicProduceResponse(Struct):
    name: str = wire("string")
    partition_responses: list[PartitionProduceResponse] = wire([PartitionProduceResponse])


class NodeEndpoint(Struct):
    node_id: int = wire("int32", since=10)
    host: str = wire("string", since=10)
    port: int = wire("int32", since=10)
    rack: str | None = wire("string", since=10, nullable=10, default=None)


class ProduceResponse(Response, versions=(0, 11), flexible=9):
    """The base offset of each partition's batch, or its error."""

    responses: list[TopicProduceResponse] = wire([TopicProduceResponse])
    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    node_endpoints: list[NodeEndpoint] = wire([NodeEndpoint], since=10, tag=0)
