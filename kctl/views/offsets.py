"""Rows and columns of `kctl offsets` and `kctl delete-records`."""

from broker.errors import ErrorCode
from broker.model import TopicPartition
from kctl.cli.tables import Column
from kctl.cli.theme import Style
from kctl.cli.times import iso_time
from kctl.model.offsets import HIGH_WATERMARK, Deletion, OffsetAnswer
from kctl.views.styles import always, if_any

OFFSET_COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("offset", right=True, priority=0),
    Column("timestamp", wide=True, right=True),
    Column("time", wide=True),
    Column("leader_epoch", wide=True, right=True),
]

FAILED_OFFSET_COLUMNS = [*OFFSET_COLUMNS, Column("error")]
"""Used if a partition failed."""

DELETION_PLAN_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("log_start_offset", "START", right=True),
    Column("log_end_offset", "END", right=True),
    Column("before", right=True, priority=1),
    Column("records", right=True, priority=0, style=if_any("records", Style.BAD)),
]

DELETION_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("low_watermark", "START", right=True),
]

FAILED_DELETION_COLUMNS = [*DELETION_COLUMNS, Column("error", style=always(Style.BAD))]
"""Used if a partition failed."""


def offset_row(
    partition: TopicPartition, answer: OffsetAnswer | None, error: ErrorCode | None = None
) -> dict[str, object]:
    """The offset of a partition; None where it or its time is unknown."""
    known = answer if answer and answer.is_known else None
    timestamp = known.timestamp if known and known.timestamp >= 0 else None
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": known.offset if known else None,
        "timestamp": timestamp,
        "time": iso_time(timestamp),
        "leader_epoch": known.leader_epoch if known and known.leader_epoch >= 0 else None,
        "error": error.name if error else None,
    }


def deletion_plan_row(
    partition: TopicPartition, offset: int, start: int | None, end: int | None
) -> dict[str, object]:
    """The records of a partition that are to be deleted, from the ends of its log."""
    before = end if offset == HIGH_WATERMARK else offset
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "log_start_offset": start,
        "log_end_offset": end,
        "before": before,
        "records": None if before is None or start is None else max(0, before - start),
    }


def deletion_row(deletion: Deletion) -> dict[str, object]:
    """The result of one partition as a row of FAILED_DELETION_COLUMNS."""
    return {
        "topic": deletion.partition.topic,
        "partition": deletion.partition.partition,
        "low_watermark": None if deletion.error else deletion.low_watermark,
        "error": deletion.error.name if deletion.error else None,
    }
