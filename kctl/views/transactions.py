"""Rows and columns of `kctl transactions`."""

from kctl.cli.tables import Column, Row, by_word
from kctl.cli.theme import Style
from kctl.cli.times import format_duration, iso_time
from kctl.model.transactions import ActiveProducer, Marker, Transaction, TransactionListing

LIST_COLUMNS = [
    Column("transactional_id"),
    Column("coordinator", right=True),
    Column("producer_id", right=True),
    Column("state", priority=1, style=by_word("state")),
]

DESCRIBE_COLUMNS = [
    Column("transactional_id"),
    Column("coordinator", right=True),
    Column("producer_id", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("state", priority=1, style=by_word("state")),
    Column("duration", right=True, raw="duration_ms", priority=2),
    Column("timeout", right=True, raw="timeout_ms"),
    Column("started", wide=True),
    Column("partitions"),
]


def _open_style(row: Row) -> Style | None:
    return None if row.get("start_offset") is None else Style.WARN


PRODUCER_COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("producer_id", right=True, priority=0),
    Column("producer_epoch", "EPOCH", right=True, priority=1),
    Column("coordinator_epoch", right=True, wide=True),
    Column("last_sequence", right=True),
    Column("last_write"),
    Column("start_offset", "OPEN-AT", right=True, priority=1, style=_open_style),
]

HANGING_COLUMNS = [
    *PRODUCER_COLUMNS[:5],
    PRODUCER_COLUMNS[-1],
    Column("age", right=True, raw="age_ms", priority=1, style=_open_style),
]

MARKER_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("producer_id", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("coordinator_epoch", right=True),
    Column("start_offset", right=True),
]


def list_row(one: TransactionListing) -> Row:
    """A transactional id as a row of LIST_COLUMNS."""
    return {
        "transactional_id": one.transactional_id,
        "coordinator": one.coordinator_id,
        "producer_id": one.producer_id,
        "state": one.state,
    }


def transaction_row(one: Transaction, now: int) -> Row:
    """A transaction as a row of DESCRIBE_COLUMNS."""
    # A completed transaction keeps its start time, but its duration does not grow any more.
    is_open = one.started_ms is not None and not one.state.startswith("Complete")
    duration_ms = now - (one.started_ms or 0) if is_open else None
    return {
        "transactional_id": one.transactional_id,
        "coordinator": one.coordinator_id,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "state": one.state,
        "duration": None if duration_ms is None else format_duration(duration_ms),
        "duration_ms": duration_ms,
        "timeout": format_duration(one.timeout_ms),
        "timeout_ms": one.timeout_ms,
        "started": iso_time(one.started_ms),
        "started_ms": one.started_ms,
        "partitions": [str(place) for place in sorted(one.partitions)],
    }


def producer_row(one: ActiveProducer, now: int) -> Row:
    """A producer of a partition; `age` is how long it has not written."""
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator_epoch": one.coordinator_epoch,
        "last_sequence": one.last_sequence,
        "last_write": iso_time(one.last_timestamp_ms),
        "last_timestamp_ms": one.last_timestamp_ms,
        "age": format_duration(max(0, now - one.last_timestamp_ms)),
        "age_ms": max(0, now - one.last_timestamp_ms),
        "start_offset": one.start_offset,
    }


def marker_row(marker: Marker, start_offset: int | None) -> Row:
    """An abort marker as a row of MARKER_COLUMNS; the offset is None if it was not given."""
    return {
        "topic": marker.partition.topic,
        "partition": marker.partition.partition,
        "producer_id": marker.producer_id,
        "producer_epoch": marker.producer_epoch,
        "coordinator_epoch": marker.coordinator_epoch,
        "start_offset": start_offset,
    }
