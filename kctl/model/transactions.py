"""Transactions and producers."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.model import TopicPartition


@dataclass(frozen=True)
class Transaction:
    """The transaction of a transactional id, as its coordinator describes it."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    """None if no transaction has started."""
    partitions: tuple[TopicPartition, ...]
    """Partitions that have not received a marker yet."""


@dataclass(frozen=True)
class ActiveProducer:
    """The state of a producer in one partition."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """-1 until a transaction marker has been written."""
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int | None
    """First offset of its open transaction; None if no transaction is open."""


@dataclass(frozen=True)
class TransactionFilter:
    """Filters of ListTransactions; the default selects all."""

    states: Sequence[str] = ()
    producer_ids: Sequence[int] = ()
    longer_than_ms: int = -1


ALL_TRANSACTIONS = TransactionFilter()


@dataclass(frozen=True)
class TransactionListing:
    """A transactional id in ListTransactions."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True)
class Marker:
    """The fields of an abort marker for one partition."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
