"""Detects that a reassignment makes no progress, and which broker is behind."""

from collections.abc import Collection
from typing import Final

from broker.model import TopicPartition
from kctl.model.reassignments import BehindBroker, Progress, Reassignments, ReplicaSizes, Stall

STALL_S: Final = 15.0
"""Longer than brokers need to detect a change of leader and to resume fetching."""


class StallDetector:
    """Turns samples of a run into `Stall`, once per stall and once per change of its cause."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._since_s = 0.0
        self._reported: tuple[BehindBroker, ...] = ()

    def sample(
        self,
        now_s: float,
        progress: Progress,
        in_progress: Reassignments,
        sizes: ReplicaSizes,
        live: Collection[int],
    ) -> Stall | None:
        """The stall at `now_s`; None without a stall, or if it was reported already."""
        done = (progress.done_bytes, progress.done_partitions)
        if done != self._last or not in_progress:
            self._last, self._since_s, self._reported = done, now_s, ()
            return None
        if now_s - self._since_s < STALL_S:
            return None
        behind = tuple(behind_brokers(in_progress, sizes, live))
        if behind == self._reported:
            return None
        self._reported = behind
        return Stall(now_s - self._since_s, behind)


def behind_brokers(
    in_progress: Reassignments, sizes: ReplicaSizes, live: Collection[int]
) -> list[BehindBroker]:
    """Brokers whose added replicas are incomplete, and sources of partitions that have no other."""
    late: dict[int, list[TopicPartition]] = {}
    for partition, one in in_progress.items():
        full = max((sizes.get((partition, source), 0) for source in one.sources), default=0)
        for broker in one.adding:
            if broker not in live or sizes.get((partition, broker), -1) < full:
                late.setdefault(broker, []).append(partition)
        if not set(one.sources) & set(live):
            for broker in one.sources:
                late.setdefault(broker, []).append(partition)
    answered = {broker for _, broker in sizes}
    return [
        BehindBroker(broker, _state(broker, live, answered), tuple(partitions))
        for broker, partitions in sorted(late.items())
    ]


def _state(broker: int, live: Collection[int], answered: Collection[int]) -> str:
    if broker not in live:
        return "is down"
    return "is up" if broker in answered else "does not answer"
