"""Rows, columns and sentences of `kctl reassign`."""

from dataclasses import asdict

from kctl.cli.tables import Column
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
from kctl.views.quantities import human_bytes, plural

CHANGE_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("now"),
    Column("then"),
    Column("adding"),
    Column("removing"),
    Column("move_bytes", "BYTES", right=True),
]
DIRECTORY_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("broker", right=True),
    Column("source", "FROM"),
    Column("target", "TO"),
    Column("move_bytes", "BYTES", right=True),
]
BROKER_COLUMNS = [
    Column("broker", right=True),
    Column("rack", wide=True),
    Column("replicas_now", right=True),
    Column("replicas_then", right=True),
    Column("leaders_now", right=True),
    Column("leaders_then", right=True),
    Column("bytes_now", right=True),
    Column("bytes_then", right=True),
    Column("bytes_in", right=True),
]
COST_COLUMNS = [
    Column("partitions"),
    Column("replicas_added"),
    Column("replicas_removed"),
    Column("leaders_changed"),
    Column("move_bytes"),
    Column("replica_skew_now"),
    Column("replica_skew_then"),
    Column("leader_skew_now"),
    Column("leader_skew_then"),
    Column("byte_skew_now"),
    Column("byte_skew_then"),
]
IN_PROGRESS_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("adding"),
    Column("removing"),
]
COPYING_COLUMNS = [
    *IN_PROGRESS_COLUMNS,
    Column("arrived_bytes", "ARRIVED", right=True),
    Column("move_bytes", "BYTES", right=True),
    Column("percent", "%", right=True),
]
STATE_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("wanted"),
    Column("status"),
]
RESULT_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("status"),
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
    """`no progress for 20s: broker 3 is down, and behind on 4 partitions: t-0, t-1, …`."""
    brokers = "; ".join(_behind(one) for one in stall.behind)
    return f"no progress for {format_duration(round(stall.seconds * 1000))}: {brokers}"


def _behind(one: BehindBroker) -> str:
    listed = ", ".join(map(str, one.partitions[:3])) + ", …" * (len(one.partitions) > 3)
    count = plural(len(one.partitions), "partition")
    return f"broker {one.broker} {one.state}, and is behind on {count}: {listed}"


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
