"""Rows, columns and sentences of `kctl reassign`."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from kctl.cli.charts import bar
from kctl.cli.tables import Column, Row, by_word
from kctl.cli.theme import Spans, Style
from kctl.cli.times import format_duration
from kctl.model.log_dirs import DirectoryMove
from kctl.model.reassignments import (
    BehindBroker,
    BrokerLoad,
    LogDirMove,
    PartitionChange,
    PartitionState,
    Progress,
    Reassignment,
    ReassignmentCost,
    Stall,
)
from kctl.views.quantities import human_bytes, plural, size_text
from kctl.views.styles import always, marked, size_column

_MAP_WIDTH = 8


def _changed_replicas(key: str, other: str, style: Style) -> Callable[[Row], Spans]:
    """The replicas of `key`; those that `other` does not have are in `style`."""

    def spans(row: Row) -> Spans:
        others = _ids(row, other)
        return marked(_ids(row, key), lambda broker: None if broker in others else style)

    return spans


def _ids(row: Row, key: str) -> list[int]:
    found = row.get(key)
    return found if isinstance(found, list) else []


def _old_style(row: Row) -> Style | None:
    return Style.FAINT


CHANGE_COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("now", priority=0, spans=_changed_replicas("now", "then", Style.BAD)),
    Column("then", priority=0, spans=_changed_replicas("then", "now", Style.GOOD)),
    Column("adding", priority=4, style=always(Style.GOOD)),
    Column("removing", priority=4, style=always(Style.BAD)),
    size_column("move_bytes", "COPY", priority=2),
]
DIRECTORY_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("broker", right=True),
    Column("source", "FROM"),
    Column("target", "TO"),
    size_column("move_bytes", "COPY", priority=2),
]


def _map(now: str, then: str) -> Callable[[Sequence[Row]], list[Spans]]:
    """Per broker a bar of its load now, and one of its load afterwards."""

    def draw(rows: Sequence[Row]) -> list[Spans]:
        loads = [(_number(row, now), _number(row, then)) for row in rows]
        largest = max((max(pair) for pair in loads), default=0) or 1
        return [_before_and_after(*pair, largest) for pair in loads]

    return draw


def _number(row: Row, key: str) -> float:
    value = row.get(key)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _before_and_after(now: float, then: float, largest: float) -> Spans:
    return (*_bar(now / largest, Style.FAINT), ("  ", None), *_bar(then / largest, Style.NAME))


def _old_to_new(now: str, then: str, text: Callable[[object], str]) -> Callable[[Row], Spans]:
    """`9 → 10`; the new value stands out if it differs."""

    def spans(row: Row) -> Spans:
        old, new = row.get(now), row.get(then)
        style = None if old == new else Style.NAME
        return ((f"{text(old)} → ", Style.FAINT), (text(new), style))

    return spans


def _bar(share: float, style: Style) -> Spans:
    drawn = bar(share, _MAP_WIDTH)
    return ((drawn, style), (" " * (_MAP_WIDTH - len(drawn)), None))


BROKER_COLUMNS = [
    Column("broker", right=True),
    Column("rack", wide=True, priority=8),
    Column("replicas_now", "REPLICAS", right=True, priority=1, style=_old_style),
    Column("replicas_then", "→ THEN", right=True, priority=1),
    Column("leaders_now", "LEADERS", right=True, priority=3, style=_old_style),
    Column("leaders_then", "→ THEN", right=True, priority=3),
    size_column("bytes_now", "SIZE", priority=2, style=_old_style),
    size_column("bytes_then", "→ THEN", priority=2),
    Column("byte_map", " ", chart=_map("bytes_now", "bytes_then"), priority=7),
    size_column("bytes_in", "COPY-IN", priority=2),
]
BROKER_MAP_COLUMNS = [
    Column("broker", right=True),
    Column("map", "REPLICAS", chart=_map("replicas_now", "replicas_then"), priority=1),
    Column("replicas", " ", spans=_old_to_new("replicas_now", "replicas_then", str), priority=0),
    Column("leaders", spans=_old_to_new("leaders_now", "leaders_then", str), priority=3),
    Column("size", spans=_old_to_new("bytes_now", "bytes_then", size_text), priority=4),
    size_column("bytes_in", "COPY-IN", priority=2),
]
"""The load of each broker before and after a plan, for terminals."""


def _progress_bars(rows: Sequence[Row]) -> list[Spans]:
    return [_bar(_number(row, "percent") / 100, Style.GOOD) for row in rows]


COST_COLUMNS = [
    Column("partitions"),
    Column("replicas_added"),
    Column("replicas_removed"),
    Column("leaders_changed"),
    Column("move_bytes", format=size_text),
    Column("replica_skew_now"),
    Column("replica_skew_then"),
    Column("leader_skew_now"),
    Column("leader_skew_then"),
    Column("byte_skew_now"),
    Column("byte_skew_then"),
]
IN_PROGRESS_COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("replicas", priority=3),
    Column("adding", priority=1, style=always(Style.GOOD)),
    Column("removing", priority=2, style=always(Style.BAD)),
]
COPYING_COLUMNS = [
    *IN_PROGRESS_COLUMNS,
    size_column("arrived_bytes", "ARRIVED", priority=4),
    size_column("move_bytes", "COPY", priority=4),
    Column("percent", "%", right=True, priority=1),
    Column("progress", " ", chart=_progress_bars, priority=6),
]
STATE_COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("replicas", priority=3),
    Column("wanted", priority=2),
    Column("status", priority=1, style=by_word("status")),
]
RESULT_COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("replicas", priority=2),
    Column("status", priority=1, style=by_word("status")),
    Column("message", wide=True),
]


def change_row(change: PartitionChange) -> dict[str, object]:
    """A planned change as a row of CHANGE_COLUMNS."""
    return {
        "topic": change.partition.topic,
        "partition": change.partition.partition,
        "now": list(change.now),
        "then": list(change.then),
        "adding": list(change.adding),
        "removing": list(change.removing),
        "move_bytes": change.move_bytes,
    }


def load_row(load: BrokerLoad) -> dict[str, object]:
    """A broker as a row of BROKER_COLUMNS."""
    return asdict(load)


def cost_record(cost: ReassignmentCost) -> dict[str, object]:
    """The totals as a record of COST_COLUMNS."""
    return asdict(cost)


def reassignment_row(one: Reassignment) -> dict[str, object]:
    """A reassignment in progress as a row of IN_PROGRESS_COLUMNS."""
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "replicas": list(one.replicas),
        "adding": list(one.adding),
        "removing": list(one.removing),
    }


def copying_row(one: Reassignment, arrived_bytes: int, move_bytes: int) -> dict[str, object]:
    """A reassignment in progress and its copied bytes as a row of COPYING_COLUMNS."""
    return reassignment_row(one) | {
        "arrived_bytes": arrived_bytes,
        "move_bytes": move_bytes,
        "percent": round(100 * arrived_bytes / move_bytes) if move_bytes else None,
    }


def state_row(state: PartitionState) -> dict[str, object]:
    """The state of a partition of a plan as a row of STATE_COLUMNS."""
    return {
        "topic": state.partition.topic,
        "partition": state.partition.partition,
        "replicas": list(state.replicas),
        "wanted": list(state.wanted),
        "status": state.status,
    }


def log_dir_move_row(move: LogDirMove) -> dict[str, object]:
    """A move between log directories as a row of STATE_COLUMNS."""
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "replicas": f"{move.broker}:{move.current}",
        "wanted": f"{move.broker}:{move.target}",
        "status": move.state,
    }


def cost_line(cost: ReassignmentCost) -> str:
    """The totals in one line."""
    return (
        f"partitions to change: {cost.partitions}; replicas to add: {cost.replicas_added}"
        f" ({human_bytes(cost.move_bytes)}), to remove: {cost.replicas_removed};"
        f" preferred leaders to change: {cost.leaders_changed};"
        f" skew (busiest broker / mean) of replicas"
        f" {cost.replica_skew_now} → {cost.replica_skew_then},"
        f" leaders {cost.leader_skew_now} → {cost.leader_skew_then},"
        f" bytes {cost.byte_skew_now} → {cost.byte_skew_then}"
    )


def progress_text(progress: Progress) -> str:
    """`3 of 8 partitions moved, 1.2 GB of 3.0 GB, 50.0 MB/s, 36s left`."""
    parts = [
        f"{progress.done_partitions} of {progress.all_partitions} partitions moved",
        f"{human_bytes(progress.done_bytes)} of {human_bytes(progress.all_bytes)}",
    ]
    if progress.bytes_per_s is not None:
        parts.append(f"{human_bytes(progress.bytes_per_s)}/s")
    if progress.seconds_left is not None:
        parts.append(f"{format_duration(round(progress.seconds_left * 1000))} left")
    return ", ".join(parts)


def run_summary(moved_bytes: int, partitions: int, seconds: float) -> str:
    """`moved 4 partitions, 1.2 GB in 36s (33.3 MB/s)`."""
    taken = format_duration(round(seconds * 1000))
    rate = f" ({human_bytes(moved_bytes / seconds)}/s)" if moved_bytes and seconds >= 1 else ""
    return f"moved {plural(partitions, 'partition')}, {human_bytes(moved_bytes)} in {taken}{rate}"


def stall_text(stall: Stall) -> str:
    """`no progress for 20s: broker 3 is down and holds up 4 partitions: t-0, t-1, …`."""
    brokers = "; ".join(_behind(one) for one in stall.behind)
    return f"no progress for {format_duration(round(stall.seconds * 1000))}: {brokers}"


def _behind(one: BehindBroker) -> str:
    listed = ", ".join(map(str, one.partitions[:3])) + ", …" * (len(one.partitions) > 3)
    count = plural(len(one.partitions), "partition")
    return f"broker {one.broker} {one.state} and holds up {count}: {listed}"


def directory_row(move: DirectoryMove) -> dict[str, object]:
    """A move between directories as a row of DIRECTORY_COLUMNS."""
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "broker": move.broker,
        "source": move.source,
        "target": move.target,
        "move_bytes": move.size_bytes,
    }
