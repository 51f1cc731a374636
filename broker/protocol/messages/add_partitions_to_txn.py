"""Tell the transaction coordinator which partitions a transaction writes to (KIP-98).

Versions:
    v3 flexible
    v4 batches and verification (KIP-890)
    v5 TRANSACTION_ABORTABLE
"""

from broker.protocol.schema import Request, Response, Struct, wire


class AddPartitionsToTxnTopic(Struct):
    name: str = wire("string")
    partitions: list[int] = wire("[]int32")


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = wire("string", since=4)
    producer_id: int = wire("int64", since=4)
    producer_epoch: int = wire("int16", since=4)
    verify_only: bool = wire("bool", since=4)
    topics: list[AddPartitionsToTxnTopic] = wire([AddPartitionsToTxnTopic], since=4)


class AddPartitionsToTxnRequest(
    Request["AddPartitionsToTxnResponse"], api_key=24, versions=(0, 5), flexible=3
):
    """Partitions to add; from v4 on brokers verify many transactions at once (KIP-890)."""

    transactions: list[AddPartitionsToTxnTransaction] = wire(
        [AddPartitionsToTxnTransaction], since=4
    )
    v3_and_below_transactional_id: str = wire("string", until=3)
    v3_and_below_producer_id: int = wire("int64", until=3)
    v3_and_below_producer_epoch: int = wire("int16", until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire([AddPartitionsToTxnTopic], until=3)


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = wire("int32")
    partition_error_code: int = wire("int16")


class AddPartitionsToTxnTopicResult(Struct):
    name: str = wire("string")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire(
        [AddPartitionsToTxnPartitionResult]
    )


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = wire("string", since=4)
    topic_results: list[AddPartitionsToTxnTopicResult] = wire(
        [AddPartitionsToTxnTopicResult], since=4
    )


class AddPartitionsToTxnResponse(Response, versions=(0, 5), flexible=3):
    """The error of each partition."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16", since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = wire(
        [AddPartitionsToTxnResult], since=4
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire(
        [AddPartitionsToTxnTopicResult], until=3
    )
