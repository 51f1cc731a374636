"""Which open transactions will never end by themselves. Pure.

A transaction hangs when a partition has it open, for longer than any transaction may take, and its
coordinator does not know of it: then no marker will come, and readers of committed records wait at
its first offset for ever. The coordinator's list holds every partition that is still to get a
marker, so a partition that is not in it gets none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from broker.model import TopicPartition


@dataclass(frozen=True)
class Transaction:
    """A transactional id's transaction as its coordinator sees it."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    """None where no transaction has begun yet."""
    partitions: tuple[TopicPartition, ...]
    """Those that are still to get a marker."""


@dataclass(frozen=True)
class ActiveProducer:
    """A producer as a partition remembers it."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """-1 until a marker of a coordinator has been written."""
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int | None
    """Where its open transaction begins; None if it has none."""


def overdue(
    producers: Iterable[ActiveProducer], now_ms: int, max_transaction_timeout_ms: int
) -> list[ActiveProducer]:
    """Those whose transaction is open for longer than any may be."""
    return [
        producer
        for producer in producers
        if producer.start_offset is not None
        and now_ms - producer.last_timestamp_ms > max_transaction_timeout_ms
    ]


def hanging(
    candidates: Iterable[ActiveProducer], by_producer_id: Mapping[int, Transaction]
) -> list[ActiveProducer]:
    """Those that no coordinator will end; `by_producer_id` has what coordinators know."""
    return [
        producer
        for producer in candidates
        if producer.producer_id not in by_producer_id
        or producer.partition not in by_producer_id[producer.producer_id].partitions
    ]
