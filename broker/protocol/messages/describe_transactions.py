"""State of transactions (KIP-664)."""

from broker.protocol.schema import Request, Response, Struct, wire


class DescribeTransactionsRequest(
    Request["DescribeTransactionsResponse"], api_key=65, versions=(0, 0), flexible=0
):
    """Transactional ids to describe."""

    transactional_ids: list[str] = wire("[]string")


class TopicData(Struct):
    topic: str = wire("string")
    partitions: list[int] = wire("[]int32")


class TransactionState(Struct):
    error_code: int = wire("int16")
    transactional_id: str = wire("string")
    transaction_state: str = wire("string")
    transaction_timeout_ms: int = wire("int32")
    transaction_start_time_ms: int = wire("int64")
    producer_id: int = wire("int64")
    producer_epoch: int = wire("int16")
    topics: list[TopicData] = wire([TopicData])


class DescribeTransactionsResponse(Response, versions=(0, 0), flexible=0):
    """The state of each."""

    throttle_time_ms: int = wire("int32")
    transaction_states: list[TransactionState] = wire([TransactionState])
