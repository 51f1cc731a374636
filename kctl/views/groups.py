"""Rows and columns of `kctl groups`."""

from collections.abc import Sequence

from broker.model import TopicPartition
from kctl.cli.tables import Column
from kctl.cli.times import format_duration
from kctl.model.groups import Group, GroupListing
from kctl.model.lag import GroupLag, Movement, PartitionLag, TopicLag
from kctl.model.offset_resets import ResetPlan

LIST_COLUMNS = [
    Column("group"),
    Column("state"),
    Column("type"),
    Column("protocol_type", wide=True),
]

LAG_COLUMNS = [
    Column("total_lag", right=True),
    Column("max_lag", right=True),
    Column("max_time_lag", right=True),
    Column("verdicts"),
]
LIST_LAG_COLUMNS = [*LIST_COLUMNS, *LAG_COLUMNS]

TOPIC_COLUMNS = [
    Column("group"),
    Column("topic"),
    Column("partitions", right=True),
    *LAG_COLUMNS,
]

OFFSET_COLUMNS = [
    Column("group"),
    Column("topic"),
    Column("partition", right=True),
    Column("current_offset", "CURRENT", right=True),
    Column("log_start_offset", "LOG-START", right=True, wide=True),
    Column("log_end_offset", "LOG-END", right=True),
    Column("lag", right=True),
    Column("time_lag", right=True),
    Column("verdict"),
    Column("client_id"),
    Column("host", wide=True),
    Column("member_id", wide=True),
]

MEMBER_COLUMNS = [
    Column("group"),
    Column("client_id"),
    Column("host"),
    Column("partitions", right=True),
    Column("member_id"),
    Column("group_instance_id", "INSTANCE-ID"),
    Column("assignment"),
]

STATE_COLUMNS = [
    Column("group"),
    Column("state"),
    Column("members", right=True),
    Column("assignor"),
    Column("coordinator"),
    Column("coordinator_id", wide=True),
]

TOTAL_COLUMNS = [
    Column("group"),
    Column("state"),
    Column("members", right=True),
    Column("partitions", right=True),
    *LAG_COLUMNS,
]

WATCH_COLUMNS = [
    Column("group"),
    Column("topic"),
    Column("partition", right=True),
    Column("lag", right=True),
    Column("time_lag", right=True),
    Column("produced_per_s", "PRODUCED/S", right=True),
    Column("consumed_per_s", "CONSUMED/S", right=True),
    Column("caught_up_in", right=True),
    Column("trend"),
    Column("verdict"),
    Column("client_id", wide=True),
]

RESET_COLUMNS = [
    Column("group"),
    Column("topic"),
    Column("partition", right=True),
    Column("current_offset", "CURRENT", right=True),
    Column("new_offset", "NEW", right=True),
    Column("change", right=True),
    Column("note"),
]

COMMITTED_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("current_offset", "CURRENT", right=True),
]


def list_row(group: GroupListing) -> dict[str, object]:
    """A group as a row of LIST_COLUMNS."""
    return {
        "group": group.group_id,
        "state": group.state,
        "type": group.type,
        "protocol_type": group.protocol_type,
    }


def offset_row(lag: PartitionLag) -> dict[str, object]:
    """One partition of one group."""
    member = lag.member
    return {
        "group": lag.group_id,
        "topic": lag.place.topic,
        "partition": lag.place.partition,
        "current_offset": lag.current_offset,
        "log_start_offset": lag.log_start_offset,
        "log_end_offset": lag.log_end_offset,
        "lag": lag.lag,
        "time_lag": _duration(lag.time_lag_ms),
        "time_lag_ms": lag.time_lag_ms,
        "verdict": lag.verdict,
        "client_id": member.client_id if member else None,
        "host": member.host if member else None,
        "member_id": member.member_id if member else None,
    }


def _duration(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_duration(milliseconds)


def watch_row(lag: PartitionLag, moved: Movement) -> dict[str, object]:
    """One partition of one group, with its rates, trend and verdict over the window."""
    eta = moved.caught_up_in_s
    return offset_row(lag) | {
        "produced_per_s": _rate(moved.produced_per_s),
        "consumed_per_s": _rate(moved.consumed_per_s),
        "caught_up_in": None if eta is None else format_duration(round(eta * 1000)),
        "trend": moved.trend,
        "verdict": moved.verdict,
    }


def _rate(per_second: float | None) -> float | None:
    return None if per_second is None else round(per_second, 1)


def member_rows(group: Group) -> list[dict[str, object]]:
    """A row per member."""
    return [
        {
            "group": group.group_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": len(member.assignment),
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "assignment": [str(place) for place in sorted(member.assignment)],
        }
        for member in group.members
    ]


def state_row(group: Group) -> dict[str, object]:
    """State and coordinator of a group."""
    return {
        "group": group.group_id,
        "state": group.state,
        "members": len(group.members),
        "assignor": group.assignor,
        "coordinator": str(group.coordinator) if group.has_coordinator else None,
        "coordinator_id": group.coordinator.id if group.has_coordinator else None,
    }


def total_row(one: GroupLag) -> dict[str, object]:
    """Sums over the partitions of one group."""
    return {
        "group": one.group.group_id,
        "state": one.group.state,
        "members": len(one.group.members),
        "partitions": len(one.partitions),
        **_lag_fields(one.partitions),
    }


def topic_row(one: TopicLag) -> dict[str, object]:
    """Sums over the partitions of one topic of one group."""
    return {
        "group": one.group_id,
        "topic": one.topic,
        "partitions": len(one.partitions),
        **_lag_fields(one.partitions),
    }


def list_lag_row(group: GroupListing, one: GroupLag | None) -> dict[str, object]:
    """A group as a row of LIST_LAG_COLUMNS; None if its lag is unknown."""
    nothing: dict[str, object] = dict.fromkeys(column.key for column in LAG_COLUMNS)
    return list_row(group) | (nothing if one is None else _lag_fields(one.partitions))


def _lag_fields(partitions: Sequence[PartitionLag]) -> dict[str, object]:
    times = [lag.time_lag_ms for lag in partitions if lag.time_lag_ms is not None]
    oldest_ms = max(times, default=None)
    return {
        "total_lag": sum(lag.lag or 0 for lag in partitions),
        "max_lag": max((lag.lag or 0 for lag in partitions), default=0),
        "max_time_lag": _duration(oldest_ms),
        "max_time_lag_ms": oldest_ms,
        "verdicts": sorted({lag.verdict.value for lag in partitions}),
    }


def reset_rows(plan: ResetPlan) -> list[dict[str, object]]:
    """A row of RESET_COLUMNS per partition of one group."""
    return [
        {
            "group": plan.group_id,
            "topic": new.place.topic,
            "partition": new.place.partition,
            "current_offset": new.current_offset,
            "new_offset": new.new_offset,
            "change": new.change,
            "note": new.note,
        }
        for new in plan.offsets
    ]


def committed_row(place: TopicPartition, offset: int | None) -> dict[str, object]:
    """A committed offset as a row of COMMITTED_COLUMNS."""
    return {"topic": place.topic, "partition": place.partition, "current_offset": offset}
