"""Rows and columns of `kctl quorum`."""

from broker.model import Uuid
from kctl.cli.tables import Column
from kctl.cli.times import format_duration, iso_time
from kctl.model.quorum import Quorum, QuorumReplica

STATUS_COLUMNS = [
    Column("cluster_id", "Cluster id"),
    Column("leader_id", "Leader"),
    Column("leader_epoch", "Leader epoch"),
    Column("high_watermark", "High watermark"),
    Column("max_follower_lag", "Max follower lag"),
    Column("max_follower_lag_time", "Max follower lag time", raw="max_follower_lag_ms"),
    Column("voters", "Voters"),
    Column("observers", "Observers"),
]

REPLICATION_COLUMNS = [
    Column("id", right=True, priority=0),
    Column("role", priority=1),
    Column("log_end_offset", "LOG-END", right=True, priority=3),
    Column("lag", right=True, priority=0),
    Column("last_fetch", priority=2),
    Column("last_caught_up", priority=2),
    Column("endpoints", priority=4),
    Column("directory_id", wide=True, priority=5),
]


def status_record(cluster_id: str | None, quorum: Quorum) -> dict[str, object]:
    """The quorum as a record of STATUS_COLUMNS."""
    slowest, lag_ms = quorum.slowest_voter, quorum.max_follower_lag_ms
    return {
        "cluster_id": cluster_id,
        "leader_id": quorum.leader_id if quorum.leader_id >= 0 else None,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "max_follower_lag": quorum.lag(slowest) if slowest else None,
        "max_follower_lag_time": None if lag_ms is None else format_duration(lag_ms),
        "max_follower_lag_ms": lag_ms,
        "voters": [voter.id for voter in quorum.voters],
        "observers": [observer.id for observer in quorum.observers],
    }


def replication_row(quorum: Quorum, replica: QuorumReplica) -> dict[str, object]:
    """One replica of the metadata log."""
    has_directory = replica.directory_id != Uuid.ZERO
    return {
        "id": replica.id,
        "role": replica.role,
        "log_end_offset": replica.log_end_offset,
        "lag": quorum.lag(replica),
        "last_fetch": iso_time(replica.last_fetch_ms),
        "last_caught_up": iso_time(replica.last_caught_up_ms),
        "endpoints": list(quorum.endpoints.get(replica.id, ())),
        "directory_id": str(replica.directory_id) if has_directory else None,
    }
