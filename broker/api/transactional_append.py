"""The batches of a transaction are appended only if its coordinator knows of it (KIP-890)."""

from typing import Final

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.log.producer_state import Verification
from broker.records.batch import read_header
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CURRENT_MAGIC,
    HEADER_SIZE,
    MAGIC_POSITION,
    TRANSACTIONAL_MASK,
)
from broker.replica.partition import Partition
from broker.txn.transaction import ProducerIdAndEpoch
from broker.txn.verification import produce_error, verify

_KNOWS_ABORTABLE: Final = 11


def is_transactional(records: memoryview) -> bool:
    """Whether a produced batch is part of a transaction; cheap, since every batch is asked."""
    return (
        len(records) >= HEADER_SIZE
        and records[MAGIC_POSITION] == CURRENT_MAGIC
        and records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_MASK != 0
    )


def verify_append(
    partition: Partition,
    records: memoryview,
    transactional_id: str | None,
    context: RequestContext,
) -> Verification | None:
    """The guard to append with; None if the transaction has written to the partition before.

    ApiError unless the partition is part of the producer's open transaction.
    """
    if transactional_id is None:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    services = context.services
    if not services.config.transaction_partition_verification_enable:
        return None
    partition.check_leader()
    header = read_header(records)
    guard = partition.log.start_verification(
        header.producer_id, header.base_sequence, header.producer_epoch
    )
    if guard is not None:
        errors = verify(
            services.transactions,
            transactional_id,
            ProducerIdAndEpoch(header.producer_id, header.producer_epoch),
            [partition.name],
            knows_abortable=context.api_version >= _KNOWS_ABORTABLE,
        )
        if errors:
            raise produce_error(errors[partition.name])
    return guard
