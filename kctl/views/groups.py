"""Rows and columns of `kctl groups`."""

from collections.abc import Callable, Mapping, Sequence

from broker.model import TopicPartition
from kctl.cli.charts import sparkline
from kctl.cli.tables import Column, Row, by_word
from kctl.cli.theme import Spans, Style, word_style
from kctl.cli.times import format_duration
from kctl.cli.trees import Node
from kctl.model.groups import Group, GroupListing, Member
from kctl.model.lag import GroupLag, Movement, PartitionLag, TopicLag
from kctl.model.offset_resets import ResetPlan
from kctl.views.quantities import plural

SPARKS = 15
"""Samples in a sparkline: a window of 30 s, every 2 s."""


def _lag_style(row: Row) -> Style | None:
    """The style of the verdict; a lag of 0 is faint."""
    if not row.get("lag"):
        return Style.FAINT
    return word_style(str(row.get("verdict") or ",".join(_texts(row.get("verdicts")))))


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _total_style(row: Row) -> Style | None:
    return word_style(",".join(_texts(row.get("verdicts")))) if row.get("total_lag") else None


def _change_style(row: Row) -> Style | None:
    """Records are skipped (forward), or read again (back); unchanged offsets are faint."""
    change = row.get("change")
    if not isinstance(change, int):
        return None
    return Style.FAINT if not change else Style.BAD if change > 0 else Style.WARN


def _sparklines(key: str) -> Callable[[Sequence[Row]], list[Spans]]:
    """A sparkline per row, as long as the history in `key`."""

    def draw(rows: Sequence[Row]) -> list[Spans]:
        histories = [row.get(key) for row in rows]
        lines = [sparkline(one, SPARKS) if isinstance(one, list) else "" for one in histories]
        return [((line.rjust(SPARKS), Style.NAME),) for line in lines]

    return draw


_LAG = Column("lag", right=True, priority=0, style=_lag_style)
_TIME_LAG = Column("time_lag", right=True, raw="time_lag_ms", priority=2, style=_lag_style)
_VERDICT = Column("verdict", priority=1, style=by_word("verdict"))
_STATE = Column("state", priority=1, style=by_word("state"))
_TOPIC = Column("topic", priority=0)
_PARTITION = Column("partition", right=True, priority=0)

LIST_COLUMNS = [
    Column("group"),
    _STATE,
    Column("type"),
    Column("protocol_type", wide=True),
]

LAG_COLUMNS = [
    Column("total_lag", right=True, priority=0, style=_total_style),
    Column("max_lag", right=True, priority=4),
    Column("max_time_lag", right=True, raw="max_time_lag_ms", priority=2, style=_total_style),
    Column("verdicts", priority=1, style=lambda row: word_style(",".join(_texts(row["verdicts"])))),
]
LIST_LAG_COLUMNS = [*LIST_COLUMNS, *LAG_COLUMNS]

TOPIC_COLUMNS = [
    Column("group", priority=3),
    _TOPIC,
    Column("partitions", right=True),
    *LAG_COLUMNS,
]

OFFSET_COLUMNS = [
    Column("group", priority=3),
    _TOPIC,
    _PARTITION,
    Column("current_offset", "CURRENT", right=True, priority=4),
    Column("log_start_offset", "LOG-START", right=True, wide=True, priority=7),
    Column("log_end_offset", "LOG-END", right=True, priority=5),
    _LAG,
    _TIME_LAG,
    _VERDICT,
    Column("client_id", priority=4),
    Column("host", wide=True, priority=6),
    Column("member_id", wide=True, priority=8),
]

MEMBER_COLUMNS = [
    Column("group", priority=3),
    Column("client_id", priority=0),
    Column("host", priority=2),
    Column("partitions", right=True, priority=1),
    Column("member_id", priority=6),
    Column("group_instance_id", "INSTANCE-ID", priority=5),
    Column("assignment", priority=4),
    Column("epoch", right=True, wide=True),
    Column("target_assignment", wide=True),
]

STATE_COLUMNS = [
    Column("group"),
    _STATE,
    Column("type", priority=3),
    Column("members", right=True, priority=2),
    Column("assignor"),
    Column("coordinator"),
    Column("coordinator_id", wide=True),
    Column("epoch", right=True, wide=True),
    Column("assignment_epoch", right=True, wide=True),
]

TOTAL_COLUMNS = [
    Column("group"),
    _STATE,
    Column("members", right=True),
    Column("partitions", right=True, priority=6),
    *LAG_COLUMNS,
]

WATCH_COLUMNS = [
    Column("group", priority=3),
    _TOPIC,
    _PARTITION,
    _LAG,
    _TIME_LAG,
    Column("produced_per_s", "PRODUCED/S", right=True, priority=5),
    Column("consumed_per_s", "CONSUMED/S", right=True, priority=5),
    Column("rate_history", chart=_sparklines("rates"), priority=8),
    Column("caught_up_in", right=True, priority=6, raw="caught_up_in_ms"),
    Column("trend", priority=4, style=by_word("trend")),
    Column("lag_history", chart=_sparklines("lags"), priority=3),
    _VERDICT,
    Column("client_id", wide=True),
]

RESET_COLUMNS = [
    Column("group", priority=3),
    _TOPIC,
    _PARTITION,
    Column("current_offset", "CURRENT", right=True, priority=1),
    Column("new_offset", "NEW", right=True, priority=0, style=_change_style),
    Column("change", right=True, priority=2, style=_change_style),
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
        "caught_up_in_ms": None if eta is None else round(eta * 1000),
        "trend": moved.trend,
        "verdict": moved.verdict,
    }


def sparks(lags: Sequence[int | None], rates: Sequence[float]) -> dict[str, object]:
    """The history of a partition as fields of its row: for terminals only."""
    return {"lags": list(lags), "rates": list(rates)}


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
            "epoch": member.epoch,
            "target_assignment": None
            if member.target is None
            else [str(place) for place in sorted(member.target)],
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
        "type": group.type,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
    }


def total_row(
    one: GroupLag, moved: Mapping[tuple[str, TopicPartition], Movement] | None = None
) -> dict[str, object]:
    """Sums over the partitions of one group; with `moved`, the verdicts over its window."""
    verdicts = {
        (moved[lag.group_id, lag.place] if moved else lag).verdict.value for lag in one.partitions
    }
    return {
        "group": one.group.group_id,
        "state": one.group.state,
        "members": len(one.group.members),
        "partitions": len(one.partitions),
        **_lag_fields(one.partitions),
        "verdicts": sorted(verdicts),
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


def group_tree(one: GroupLag) -> Node:
    """A group, its members, and the partitions of each; partitions without a member come last."""
    by_member: dict[str | None, list[PartitionLag]] = {
        member.member_id: [] for member in one.group.members
    }
    for lag in one.partitions:
        by_member.setdefault(lag.member.member_id if lag.member else None, []).append(lag)
    members = [
        Node(_member_spans(member, by_member[member.member_id]), _partitions(by_member, member))
        for member in one.group.members
    ]
    if unread := by_member.get(None):
        nodes = [_partition_node(lag) for lag in unread]
        members.append(Node((("no member", Style.WARN), (_total(unread), None)), nodes))
    spans = (
        (f"group {one.group.group_id}", Style.HEADING),
        (f"  {one.group.state}", word_style(one.group.state)),
        (_total(one.partitions), None),
    )
    return Node(spans, members)


def _partitions(by_member: dict[str | None, list[PartitionLag]], member: Member) -> list[Node]:
    return [_partition_node(lag) for lag in by_member[member.member_id]]


def _member_spans(member: Member, lags: Sequence[PartitionLag]) -> Spans:
    return (
        (member.client_id or member.member_id, Style.NAME),
        (f"  {member.host}", Style.FAINT),
        (_total(lags), None),
    )


def _total(lags: Sequence[PartitionLag]) -> str:
    return f"  {plural(len(lags), 'partition')}, lag {sum(lag.lag or 0 for lag in lags)}"


def _partition_node(lag: PartitionLag) -> Node:
    row = offset_row(lag)
    text = f"  lag {'-' if lag.lag is None else lag.lag}"
    if lag.time_lag_ms:
        text += f", {_duration(lag.time_lag_ms)}"
    place = f"{lag.place.topic}:{lag.place.partition}"
    verdict = f"  {lag.verdict}", word_style(lag.verdict)
    return Node(((place, None), (text, _lag_style(row)), verdict))
