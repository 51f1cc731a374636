"""Two looks at the same partition, and what has happened between them. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from kctl.plans.lag import PartitionLag


class Trend(StrEnum):
    """Where a partition's lag is going."""

    CAUGHT_UP = "caught-up"
    FALLING = "falling"
    STEADY = "steady"
    GROWING = "growing"
    STALLED = "stalled"
    """Nothing is read although there is something to read."""
    REWOUND = "rewound"
    """The group's offset went back: it was reset, or a member was set back."""
    UNKNOWN = "-"
    """There was no earlier look."""


@dataclass(frozen=True)
class Movement:
    """How fast a partition is written and read."""

    trend: Trend
    consumed_per_s: float | None = None
    produced_per_s: float | None = None
    caught_up_in_s: float | None = None
    """When the lag is gone if it all goes on like this; None if it never is."""


def movement(before: PartitionLag | None, now: PartitionLag, seconds: float) -> Movement:
    """What has happened in `seconds`."""
    if (
        before is None
        or seconds <= 0
        or None in (before.current_offset, now.current_offset)
        or None in (before.log_end_offset, now.log_end_offset)
    ):
        return Movement(Trend.UNKNOWN)
    read = (now.current_offset or 0) - (before.current_offset or 0)
    written = (now.log_end_offset or 0) - (before.log_end_offset or 0)
    lag = now.lag or 0
    caught_up = lag / (read - written) * seconds if lag and read > written else None
    return Movement(_trend(read, written, lag), read / seconds, written / seconds, caught_up)


def _trend(read: int, written: int, lag: int) -> Trend:
    if read < 0:
        return Trend.REWOUND
    if lag <= 0:
        return Trend.CAUGHT_UP
    if read == 0:
        return Trend.STALLED
    if read == written:
        return Trend.STEADY
    return Trend.FALLING if read > written else Trend.GROWING
