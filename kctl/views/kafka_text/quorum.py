"""The output of kafka-metadata-quorum."""

from collections.abc import Iterator, Sequence

from broker.model import Uuid
from kctl.model.quorum import LEADER, Quorum, QuorumReplica

_TITLES = (
    *("NodeId", "DirectoryId", "LogEndOffset", "Lag"),
    *("LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"),
)


def status_lines(cluster_id: str | None, quorum: Quorum) -> Iterator[str]:
    """`describe --status`."""
    slowest, lag_ms = quorum.slowest_voter, quorum.max_follower_lag_ms
    values = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": quorum.lag(slowest) if slowest else None,
        "MaxFollowerLagTimeMs": -1 if lag_ms is None else lag_ms,
        "CurrentVoters": _replicas(quorum, quorum.voters),
        "CurrentObservers": _replicas(quorum, quorum.observers),
    }
    for name, value in values.items():
        yield f"{name + ':':<24}{value}"


def _replicas(quorum: Quorum, replicas: Sequence[QuorumReplica]) -> str:
    return f"[{', '.join(_replica(quorum, one) for one in replicas)}]"


def _replica(quorum: Quorum, replica: QuorumReplica) -> str:
    parts = [f'"id": {replica.id}']
    if replica.directory_id != Uuid.ZERO:
        parts.append(f'"directoryId": "{replica.directory_id}"')
    if endpoints := quorum.endpoints.get(replica.id):
        quoted = ", ".join(f'"{one}"' for one in endpoints)
        parts.append(f'"endpoints": [{quoted}]')
    return f"{{{', '.join(parts)}}}"


def replication_lines(quorum: Quorum, now_ms: int | None) -> Iterator[str]:
    """`describe --replication`; with `now_ms`, as `--human-readable` prints it."""
    ordered = sorted(quorum.voters, key=lambda voter: voter.role != LEADER)
    rows = [_TITLES, *(_row(quorum, one, now_ms) for one in (*ordered, *quorum.observers))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True))
        yield "".join(cells)


def _row(quorum: Quorum, replica: QuorumReplica, now_ms: int | None) -> tuple[str, ...]:
    return (
        str(replica.id),
        str(replica.directory_id),
        str(replica.log_end_offset),
        str(quorum.lag(replica)),
        _time(replica.last_fetch_ms, now_ms),
        _time(replica.last_caught_up_ms, now_ms),
        replica.role.capitalize(),
    )


def _time(timestamp_ms: int | None, now_ms: int | None) -> str:
    if timestamp_ms is None:
        return "-1"
    return str(timestamp_ms) if now_ms is None else f"{now_ms - timestamp_ms} ms ago"
