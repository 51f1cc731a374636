"""Verification of transactional batches before they are appended (KIP-890).

A batch is appended only if its coordinator knows that the partition is part of the transaction. If
this broker is the coordinator, it checks at once. If another broker is, it gets one request for all
partitions that need verification, before anything is appended.
"""

from collections.abc import Awaitable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.log.producer_state import VerificationGuard
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.protocol.messages.produce import ProduceRequest
from broker.records.batch import read_header
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CURRENT_MAGIC,
    HEADER_SIZE,
    MAGIC_POSITION,
    TRANSACTIONAL_MASK,
)
from broker.replica.partition import Partition
from broker.txn.add_partitions_to_txn_manager import produce_error, verify

_KNOWS_ABORTABLE: Final = 11


def is_transactional(records: memoryview) -> bool:
    """Whether a batch is part of a transaction. Called for every batch: reads two bytes of it."""
    return (
        len(records) >= HEADER_SIZE
        and records[MAGIC_POSITION] == CURRENT_MAGIC
        and records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_MASK != 0
    )


Verified = Mapping[TopicPartition, VerificationGuard | ApiError]
"""By partition: the guard to append with, or the error of the coordinator."""

NOT_VERIFIED: Final[Verified] = MappingProxyType({})


def verify_elsewhere(
    request: ProduceRequest, context: RequestContext
) -> Awaitable[Verified] | None:
    """Verify with the coordinator on another broker; None if no partition needs that."""
    services, transactional_id = context.services, request.transactional_id
    if (
        transactional_id is None
        or not services.config.transaction_partition_verification_enable
        or not services.verifier.is_elsewhere(transactional_id)
    ):
        return None
    asked = {
        partition.name: (producer, guard)
        for partition, records in _transactional(request, context)
        if partition.is_leader
        for producer, guard in [_guard(partition, records)]
        if guard is not None
    }
    return _verify_elsewhere(transactional_id, asked, context) if asked else None


def _transactional(
    request: ProduceRequest, context: RequestContext
) -> Iterator[tuple[Partition, memoryview]]:
    """The transactional batches for partitions of this broker; others fail when appended."""
    known = context.services.replicas.partitions
    for topic in request.topic_data:
        for data in topic.partition_data:
            partition = known.get(TopicPartition(topic.name, data.index))
            records = data.records
            if (
                partition is not None
                and isinstance(records, memoryview)
                and is_transactional(records)
            ):
                yield partition, records


async def _verify_elsewhere(
    transactional_id: str,
    asked: Mapping[TopicPartition, tuple[ProducerIdAndEpoch, VerificationGuard]],
    context: RequestContext,
) -> Verified:
    by_producer: dict[ProducerIdAndEpoch, list[TopicPartition]] = {}
    for name, (producer, _) in asked.items():
        by_producer.setdefault(producer, []).append(name)
    errors: dict[TopicPartition, ErrorCode] = {}
    for producer, names in by_producer.items():  # one producer, except for unusual clients
        errors |= await context.services.verifier.verify(
            transactional_id,
            producer,
            names,
            knows_abortable=context.api_version >= _KNOWS_ABORTABLE,
        )
    return {
        name: produce_error(errors[name]) if name in errors else guard
        for name, (_, guard) in asked.items()
    }


def _guard(
    partition: Partition, records: memoryview
) -> tuple[ProducerIdAndEpoch, VerificationGuard | None]:
    """The producer, and the guard for its first append; None if its transaction is open here."""
    header = read_header(records)
    guard = partition.log.start_verification(
        header.producer_id, header.base_sequence, header.producer_epoch
    )
    return ProducerIdAndEpoch(header.producer_id, header.producer_epoch), guard


def verify_append(
    partition: Partition,
    records: memoryview,
    transactional_id: str | None,
    context: RequestContext,
    verified: Verified,
) -> VerificationGuard | None:
    """The guard to append with; None if the transaction has written to the partition before.

    ApiError unless the partition is part of the producer's open transaction.
    """
    if transactional_id is None:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    services = context.services
    if not services.config.transaction_partition_verification_enable:
        return None
    partition.check_leader()
    answer = verified.get(partition.name)
    if isinstance(answer, ApiError):
        raise answer
    if answer is not None:
        return answer
    producer, guard = _guard(partition, records)
    if guard is not None:
        errors = verify(
            services.transactions,
            transactional_id,
            producer,
            [partition.name],
            knows_abortable=context.api_version >= _KNOWS_ABORTABLE,
        )
        if errors:
            raise produce_error(errors[partition.name])
    return guard
