"""Rows and columns of `kctl replicas list`."""

from kctl.cli.tables import Column, by_word
from kctl.model.replicas import ReplicaState
from kctl.views.styles import size_column

COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("broker", right=True, priority=0),
    Column("role", priority=1),
    Column("status", priority=0, style=by_word("status")),
    Column("log_start_offset", "START", right=True, priority=4),
    Column("high_watermark", "HW", right=True, priority=2),
    Column("log_end_offset", "LEO", right=True, priority=1),
    Column("lag", right=True, priority=1),
    size_column("size_bytes", priority=5),
    Column("error", wide=True),
]


def replica_row(state: ReplicaState) -> dict[str, object]:
    """A replica as a row of COLUMNS."""
    return {
        "topic": state.partition.topic,
        "partition": state.partition.partition,
        "broker": state.broker,
        "role": "leader" if state.is_leader else "follower",
        "in_isr": state.is_in_sync,
        "status": _status(state),
        "log_start_offset": state.log_start_offset,
        "high_watermark": state.high_watermark,
        "log_end_offset": state.log_end_offset,
        "lag": state.lag,
        "size_bytes": state.size_bytes,
        "error": state.error,
    }


def _status(state: ReplicaState) -> str:
    """`isr` or `osr` (out of sync), and what is wrong with its broker."""
    sync = "isr" if state.is_in_sync else "osr"
    if not state.is_online:
        return f"{sync},offline"
    return f"{sync},unanswered" if state.log_end_offset is None and not state.error else sync
