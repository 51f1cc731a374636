"""Rows of groups and of the consumers of a topic."""

from collections.abc import Sequence

from kctl.model.lag import Movement, PartitionLag, Trend, Verdict
from kctl.model.top import TopSample
from kctl.views.groups import watch_row
from kctl.views.top.numbers import duration, milliseconds, rounded, total

_WORST = (
    *(Verdict.STALLED, Verdict.LOST, Verdict.BEYOND, Verdict.LAGGING, Verdict.UNREAD),
    *(Verdict.NO_OFFSET, Verdict.UNKNOWN, Verdict.OK),
)
"""Verdicts of partitions, the one that decides for the group first."""
Rows = list[dict[str, object]]


def group_rows(sample: TopSample) -> Rows:
    """A row per group."""
    return [
        {
            "group": one.group.group_id,
            "state": one.group.state,
            "members": len(one.group.members),
            "topics": len({lag.place.topic for lag in one.partitions}),
            **_lag_fields(sample, one.partitions),
            "history": list(sample.lag_history.get(one.group.group_id, ())),
        }
        for one in sample.reading.snapshot.groups
    ]


def group_partition_rows(sample: TopSample, group_id: str) -> Rows:
    """A row per partition of a group."""
    return [
        watch_row(lag, _movement(sample, lag))
        for one in sample.reading.snapshot.groups
        if one.group.group_id == group_id
        for lag in one.partitions
    ]


def consumer_rows(sample: TopSample, topic: str) -> Rows:
    """A row per group and member that reads the topic."""
    rows = []
    for group in sample.reading.snapshot.groups:
        by_member: dict[str, list[PartitionLag]] = {}
        for lag in group.partitions:
            if lag.place.topic == topic:
                member_id = lag.member.member_id if lag.member else ""
                by_member.setdefault(member_id, []).append(lag)
        for lags in by_member.values():
            member = lags[0].member
            rows.append(
                {
                    "group": group.group.group_id,
                    "client_id": member.client_id if member else None,
                    "host": member.host if member else None,
                    "partitions": [lag.place.partition for lag in lags],
                    **_lag_fields(sample, lags),
                }
            )
    return rows


def _movement(sample: TopSample, lag: PartitionLag) -> Movement:
    found = sample.reading.snapshot.movements.get((lag.group_id, lag.place))
    return found or Movement(Trend.UNKNOWN, lag.verdict)


def _lag_fields(sample: TopSample, lags: Sequence[PartitionLag]) -> dict[str, object]:
    """Lag, rates, time to zero and verdict of several partitions together."""
    moved = [_movement(sample, lag) for lag in lags]
    lag = sum(max(0, one.lag or 0) for one in lags)
    consumed = total(one.consumed_per_s for one in moved)
    produced = total(one.produced_per_s for one in moved)
    eta_s = None
    if lag and consumed is not None and produced is not None and consumed > produced:
        eta_s = lag / (consumed - produced)
    seconds = sample.reading.snapshot.lag_seconds
    times = [seconds[key] for one in lags if (key := (one.group_id, one.place)) in seconds]
    oldest_s = max(times, default=None)
    verdicts = {one.verdict for one in moved}
    return {
        "lag": lag,
        "time_lag": duration(oldest_s),
        "time_lag_ms": milliseconds(oldest_s),
        "consumed_per_s": rounded(consumed),
        "produced_per_s": rounded(produced),
        "caught_up_in": duration(eta_s),
        "caught_up_in_ms": milliseconds(eta_s),
        "verdict": next((one for one in _WORST if one in verdicts), None),
    }
