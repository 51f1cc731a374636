"""The output of kafka-transactions: tables with tabs between padded columns."""

from collections.abc import Iterable, Sequence

from kctl.model.transactions import ActiveProducer, Transaction, TransactionListing
from kctl.views.kafka_text.java_maps import hash_map_order
from kctl.views.kafka_text.java_order import partition_hash

_LIST = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
_DESCRIBE = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
_PRODUCERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
_HANGING = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
_MINUTE_MS = 60_000


def list_lines(listings: Iterable[TransactionListing]) -> list[str]:
    """`kafka-transactions list`."""
    rows = [
        (one.transactional_id, one.coordinator_id, one.producer_id, one.state) for one in listings
    ]
    return _table(_LIST, rows)


def describe_lines(transaction: Transaction, now_ms: int) -> list[str]:
    """`kafka-transactions describe`."""
    one, started_ms = transaction, transaction.started_ms
    places = hash_map_order(one.partitions, partition_hash)
    row = (
        one.coordinator_id,
        one.transactional_id,
        one.producer_id,
        one.producer_epoch,
        one.state,
        one.timeout_ms,
        "None" if started_ms is None else started_ms,
        "None" if started_ms is None else now_ms - started_ms,
        ",".join(map(str, places)),
    )
    return _table(_DESCRIBE, [row])


def producers_lines(producers: Iterable[ActiveProducer]) -> list[str]:
    """`kafka-transactions describe-producers`."""
    rows = [
        (
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch,
            one.last_sequence,
            one.last_timestamp_ms,
            "None" if one.start_offset is None else one.start_offset,
        )
        for one in producers
    ]
    return _table(_PRODUCERS, rows)


def hanging_lines(producers: Sequence[ActiveProducer], now_ms: int) -> list[str]:
    """`kafka-transactions find-hanging`, which groups by producer id in a HashMap."""
    ids = hash_map_order((one.producer_id for one in producers), _long_hash)
    rows = [
        (
            *one.partition,
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch,
            -1 if one.start_offset is None else one.start_offset,
            one.last_timestamp_ms,
            (now_ms - one.last_timestamp_ms) // _MINUTE_MS,
        )
        for producer_id in ids
        for one in producers
        if one.producer_id == producer_id
    ]
    return _table(_HANGING, rows)


def _long_hash(value: int) -> int:
    """Java's hash of a Long."""
    return (value ^ value >> 32) & 0xFFFFFFFF


def _table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    grid = [headings, *([str(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return [
        "".join(f"{text:<{width}}\t" for text, width in zip(line, widths, strict=True))
        for line in grid
    ]
