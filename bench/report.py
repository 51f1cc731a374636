"""The result of a measurement: our figure, the peer's, their ratio, and the goal."""

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kctl.cli.tables import Column, table_lines

COLUMNS = [
    Column("what"),
    Column("ours", right=True),
    Column("theirs", right=True),
    Column("peer"),
    Column("ratio", right=True),
    Column("goal", right=True),
    Column("verdict", ""),
]


@dataclass(frozen=True)
class Comparison:
    """One quantity measured on both sides, in the same unit."""

    what: str
    ours: float
    theirs: float
    peer: str
    unit: str
    """Unit of both figures, e.g. `ms` or `MB/s`."""
    goal: float | None = None
    """The ratio ours / theirs to reach; None for rows without a goal."""
    more_is_better: bool = False
    """True for rates, whose goal is a lower limit; otherwise the goal is an upper limit."""

    @property
    def ratio(self) -> float:
        """Ours / theirs: below 1 is less time, above 1 a higher rate."""
        return self.ours / self.theirs

    @property
    def reached(self) -> bool:
        """Whether the goal is met; rows without a goal always are."""
        if self.goal is None:
            return True
        return self.ratio >= self.goal if self.more_is_better else self.ratio <= self.goal


def report(comparisons: Iterable[Comparison]) -> list[str]:
    """The table that a bench run prints."""
    return table_lines([_row(comparison) for comparison in comparisons], COLUMNS)


def _row(comparison: Comparison) -> dict[str, object]:
    sign = "≥" if comparison.more_is_better else "≤"
    return {
        "what": comparison.what,
        "ours": f"{comparison.ours:,.3g} {comparison.unit}",
        "theirs": f"{comparison.theirs:,.3g} {comparison.unit}",
        "peer": comparison.peer,
        "ratio": f"{comparison.ratio:.2f}x",
        "goal": None if comparison.goal is None else f"{sign} {comparison.goal:g}x",
        "verdict": "" if comparison.goal is None else "ok" if comparison.reached else "MISSED",
    }


def median_seconds(action: Callable[[], object], rounds: int = 7) -> float:
    """Median duration of `action` over `rounds` runs, after one warm-up run."""
    action()
    return statistics.median(_seconds(action) for _ in range(rounds))


def seconds_per_call(*actions: Callable[[], object], min_time_s: float = 0.2) -> list[float]:
    """Duration of one call of each action: the best of seven runs of many calls.

    The actions take turns, so that other load on the machine affects all of them alike. The best
    run counts, not the median: for pure computation, other load can only add time. The garbage
    collector is off, as in `timeit`; a broker runs with it frozen and with high thresholds.
    """
    best = [float("inf")] * len(actions)
    gc.disable()
    try:
        calls = [_calls_within(action, min_time_s) for action in actions]
        for _ in range(7):
            for index, action in enumerate(actions):
                spent = _seconds_of_many(action, calls[index]) / calls[index]
                best[index] = min(best[index], spent)
    finally:
        gc.enable()
    return best


def _calls_within(action: Callable[[], object], min_time_s: float) -> int:
    calls = 1
    while (spent := _seconds_of_many(action, calls)) < min_time_s:
        calls = max(calls * 2, int(calls * min_time_s / max(spent, 1e-9)))
    return calls


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _seconds_of_many(action: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        action()
    return time.perf_counter() - start
