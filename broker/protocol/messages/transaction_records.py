"""Keys and values of the records in `__transaction_state`."""

from broker.protocol.schema import Message, Struct, wire


class TransactionLogKey(Message, versions=(0, 0)):
    """A transactional id."""

    transactional_id: str = wire("string", until=0)


class PartitionsSchema(Struct):
    topic: str = wire("string")
    partition_ids: list[int] = wire("[]int32")


class TransactionLogValue(Message, versions=(0, 1), flexible=1):
    """The state of its transaction."""

    producer_id: int = wire("int64")
    previous_producer_id: int = wire("int64", since=1, default=-1, tag=0)
    next_producer_id: int = wire("int64", since=1, default=-1, tag=1)
    producer_epoch: int = wire("int16")
    transaction_timeout_ms: int = wire("int32")
    transaction_status: int = wire("int8")
    transaction_partitions: list[PartitionsSchema] | None = wire([PartitionsSchema], nullable=0)
    transaction_last_update_timestamp_ms: int = wire("int64")
    transaction_start_timestamp_ms: int = wire("int64")
    client_transaction_version: int = wire("int16", since=1, tag=2)
