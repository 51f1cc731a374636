"""Whether a write belongs to a transaction that its coordinator knows of (KIP-890).

Asked before the first batch of a transaction is appended to a partition, so that a batch which
comes late, after its transaction has ended, cannot begin one that nobody would ever end.

What the coordinator answers is put into words that producers of every age understand.
"""

from collections.abc import Collection
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.topic_names import OFFSETS_TOPIC
from broker.txn.coordinator import TransactionCoordinator
from broker.txn.transaction import ProducerIdAndEpoch

_TRANSIENT: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def verify(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    *,
    knows_abortable: bool,
) -> dict[TopicPartition, ErrorCode]:
    """The errors of partitions that are not part of the producer's open transaction.

    `knows_abortable`: the client knows TRANSACTION_ABORTABLE (Produce from v11, TxnOffsetCommit
    from v4 on); others are told INVALID_TXN_STATE.
    """
    try:
        codes = coordinator.verify_partitions(transactional_id, producer, partitions)
    except ApiError as error:
        codes = dict.fromkeys(partitions, error.code)
    return {
        partition: _for_client(code, knows_abortable)
        for partition, code in codes.items()
        if code != ErrorCode.NONE
    }


def _for_client(code: ErrorCode, knows_abortable: bool) -> ErrorCode:
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code


async def verify_offset_commit(
    coordinator: TransactionCoordinator,
    partition: int,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
) -> None:
    """ApiError unless a partition of the offsets topic is part of the producer's transaction.

    TRANSACTION_ABORTABLE is for the API to put into older words: only it knows the version.
    """
    name = TopicPartition(OFFSETS_TOPIC, partition)
    producer = ProducerIdAndEpoch(producer_id, producer_epoch)
    errors = verify(coordinator, transactional_id, producer, [name], knows_abortable=True)
    if errors:
        raise ApiError(errors[name], f"{name} was not added to the transaction")


def produce_error(code: ErrorCode) -> ApiError:
    """What Produce answers for a partition that could not be verified.

    Old producers do not try again on a coordinator's errors, but do on NOT_ENOUGH_REPLICAS, and
    without asking for metadata first.
    """
    if code in _TRANSIENT:
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    if code == ErrorCode.INVALID_TXN_STATE:
        return ApiError(code, "Partition was not added to the transaction")
    return ApiError(code)
