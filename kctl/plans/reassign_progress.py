"""How far moves are: bytes that have arrived, the rate, and the time it will take. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.model import TopicPartition
from kctl.admin.reassignments import Moving, Reassignment
from kctl.plans.reassign_cost import Move, human_bytes
from kctl.records.times import format_duration

LOOKS: Final = 12
"""The rate is that of the last so many looks: it follows what happens, and does not jump."""

Sizes = Mapping[tuple[TopicPartition, int], int]


def arrived(one: Reassignment, sizes: Sizes) -> tuple[int, int]:
    """Bytes that the added replicas have, and that they will have."""
    full = max((sizes.get((one.partition, broker), 0) for broker in one.sources), default=0)
    there = sum(min(full, sizes.get((one.partition, broker), 0)) for broker in one.adding)
    return there, full * len(one.adding)


@dataclass(frozen=True)
class Look:
    """How far a run is at one moment."""

    done_partitions: int
    all_partitions: int
    done_bytes: int
    all_bytes: int
    bytes_per_s: float | None
    """None until there is something to compare with."""

    @property
    def seconds_left(self) -> float | None:
        """None if that cannot be told, or nothing is left."""
        if not self.bytes_per_s or self.done_bytes >= self.all_bytes:
            return None
        return (self.all_bytes - self.done_bytes) / self.bytes_per_s

    def text(self) -> str:
        """The look as a sentence."""
        parts = [
            f"{self.done_partitions} of {self.all_partitions} partitions moved",
            f"{human_bytes(self.done_bytes)} of {human_bytes(self.all_bytes)}",
        ]
        if self.bytes_per_s is not None:
            parts.append(f"{human_bytes(self.bytes_per_s)}/s")
        if self.seconds_left is not None:
            parts.append(f"{format_duration(round(self.seconds_left * 1000))} left")
        return ", ".join(parts)


class Meter:
    """Makes looks of what is seen of a run's moves.

    Invariant: done bytes never fall, though segments may be deleted while they are copied.
    """

    def __init__(self, moves: Iterable[Move]) -> None:
        self._moves = {move.partition: move for move in moves}
        self._done: set[TopicPartition] = set()
        self._seen: deque[tuple[float, int]] = deque(maxlen=LOOKS)
        self._most_bytes = 0

    def finished(self, partitions: Iterable[TopicPartition]) -> None:
        """These have come to their end."""
        self._done.update(partitions)

    def look(self, now_s: float, moving: Moving, sizes: Sizes) -> Look:
        """How far it is at `now_s`, by what is still moving."""
        under_way = [
            min(arrived(one, sizes)[0], self._moves[tp].move_bytes)
            for tp, one in moving.items()
            if tp in self._moves and tp not in self._done
        ]
        done_bytes = sum(self._moves[tp].move_bytes for tp in self._done) + sum(under_way)
        self._most_bytes = max(self._most_bytes, done_bytes)
        self._seen.append((now_s, self._most_bytes))
        return Look(
            len(self._done),
            len(self._moves),
            self._most_bytes,
            sum(move.move_bytes for move in self._moves.values()),
            self._rate(),
        )

    def _rate(self) -> float | None:
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None
