"""Rates, trend and verdict of a partition over a window of samples.

Committed offsets advance in steps: with auto.commit.interval.ms at its default, every 5 s. Between
two commits the lag of any consumer grows and its offset stands still, so two samples in a row say
nothing. Lags are therefore compared only at samples that follow a commit, over a window that spans
several commits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from broker.model import TopicPartition
from kctl.model.lag import Movement, PartitionLag, Trend, Verdict

DEFAULT_WINDOW_S = 30.0
"""Six commits at the default auto.commit.interval.ms."""

Key = tuple[str, TopicPartition]


@dataclass(frozen=True)
class Sample:
    """The lag of a partition at one time."""

    time_s: float
    lag: PartitionLag

    @property
    def offset(self) -> int:
        """The committed offset."""
        return self.lag.current_offset or 0

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.lag.log_end_offset or 0


@dataclass
class LagHistory:
    """The samples of all partitions within the window."""

    window_s: float = DEFAULT_WINDOW_S
    _samples: dict[Key, list[Sample]] = field(default_factory=dict)
    """*Invariant*: in the order of time; all but the first are within the window."""

    def add(self, time_s: float, lags: Iterable[PartitionLag]) -> list[Movement]:
        """Add a sample of each partition; the movement of each. Others are forgotten."""
        kept = {}
        for lag in lags:
            key = lag.group_id, lag.place
            samples = [*self._samples.get(key, ()), Sample(time_s, lag)]
            while len(samples) > 2 and samples[1].time_s <= time_s - self.window_s:
                samples.pop(0)  # one sample at or before the start, so that the window is covered
            kept[key] = samples
        self._samples = kept
        return [movement(samples, self.window_s) for samples in kept.values()]

    def lags(self, lag: PartitionLag) -> list[int | None]:
        """The lags of one partition within the window, the newest last."""
        return [sample.lag.lag for sample in self._samples[lag.group_id, lag.place]]

    def rates(self, lag: PartitionLag) -> list[float]:
        """Records consumed per second between one sample and the next."""
        return [
            _per_second(before.offset, after.offset, before, after)
            for before, after in pairwise(self._samples[lag.group_id, lag.place])
        ]


def movement(samples: Sequence[Sample], window_s: float) -> Movement:
    """Rates, trend and verdict of one partition."""
    known = _since_reset(samples)
    now = samples[-1]
    if len(known) < 2:
        is_rewound = len(samples) > 1 and now.offset < samples[-2].offset
        is_known = now.lag.lag is not None and samples[-2:][0].lag.lag is not None
        trend = Trend.REWOUND if is_rewound and is_known else Trend.UNKNOWN
        return Movement(trend, now.lag.verdict)
    commits = [after for before, after in pairwise(known) if after.offset > before.offset]
    produced = _per_second(known[0].end, now.end, known[0], now)
    consumed = _consumed(known, commits)
    trend = _trend(known, commits, window_s)
    return Movement(
        trend, _verdict(known, trend), consumed, produced, _caught_up(now, consumed, produced)
    )


def _since_reset(samples: Sequence[Sample]) -> list[Sample]:
    """The last samples with known offsets in which the committed offset did not decrease."""
    found: list[Sample] = []
    for sample in reversed(samples):
        if sample.lag.lag is None or (found and sample.offset > found[-1].offset):
            break
        found.append(sample)
    return found[::-1]


def _trend(known: Sequence[Sample], commits: Sequence[Sample], window_s: float) -> Trend:
    first, now = known[0], known[-1]
    if now.end <= now.offset:
        return Trend.CAUGHT_UP
    span_s = now.time_s - first.time_s
    if not commits:
        return Trend.STALLED if span_s >= window_s / 2 else Trend.UNKNOWN
    if len(commits) < 2:
        return Trend.UNKNOWN
    change = (commits[-1].end - commits[-1].offset) - (commits[0].end - commits[0].offset)
    # A commit is seen up to one interval after it was made, and records arrive meanwhile.
    interval_s = max(after.time_s - before.time_s for before, after in pairwise(known))
    tolerance = (now.end - first.end) / span_s * interval_s
    if abs(change) <= tolerance:
        return Trend.STEADY
    return Trend.GROWING if change > 0 else Trend.FALLING


def _verdict(known: Sequence[Sample], trend: Trend) -> Verdict:
    """The verdict of the last sample, corrected by what the window shows."""
    first, now = known[0], known[-1]
    verdict = now.lag.verdict
    if verdict not in (Verdict.OK, Verdict.LAGGING):
        return verdict
    if trend is Trend.STALLED:
        return Verdict.STALLED
    # Everything written before the window has been read: only the records' timestamps are old.
    has_read_all = now.offset >= first.end and trend in (Trend.STEADY, Trend.FALLING)
    return Verdict.OK if has_read_all else verdict


def _consumed(known: Sequence[Sample], commits: Sequence[Sample]) -> float:
    """Records per second between the first and the last commit, else over all samples."""
    first, last = (commits[0], commits[-1]) if len(commits) > 1 else (known[0], known[-1])
    return _per_second(first.offset, last.offset, first, last)


def _per_second(before: int, after: int, first: Sample, last: Sample) -> float:
    seconds = last.time_s - first.time_s
    return (after - before) / seconds if seconds > 0 else 0.0


def _caught_up(now: Sample, consumed: float, produced: float) -> float | None:
    lag = now.end - now.offset
    return lag / (consumed - produced) if lag > 0 and consumed > produced else None
