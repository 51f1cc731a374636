"""How a measurement is stated: ours, theirs, the ratio, and what was promised."""

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kctl.tables import Column, table_lines

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
    """One thing measured on both sides, in the same unit."""

    what: str
    ours: float
    theirs: float
    peer: str
    unit: str
    """What the numbers count, e.g. `ms` or `MB/s`."""
    goal: float | None = None
    """The ratio ours / theirs that was promised; None if nothing was."""
    more_is_better: bool = False
    """True for rates: then the goal is a lower limit, else an upper one."""

    @property
    def ratio(self) -> float:
        """Ours / theirs: below 1 is less time, above 1 a higher rate."""
        return self.ours / self.theirs

    @property
    def reached(self) -> bool:
        """Whether the promise is kept."""
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
    """How long `action` takes: the median of `rounds`, after one that does not count."""
    action()
    return statistics.median(_seconds(action) for _ in range(rounds))


def seconds_per_call(*actions: Callable[[], object], min_time_s: float = 0.2) -> list[float]:
    """How long one call of each quick action takes: the best of seven runs of many calls.

    The actions take turns, so that a busy machine is busy for all of them. Best and not median,
    because for pure computation everything else on the machine can only add. Without the garbage
    collector, as `timeit` measures and as a broker runs (frozen, high limits).
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
