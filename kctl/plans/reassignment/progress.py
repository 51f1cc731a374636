"""Progress of reassignments: bytes copied, rate, and remaining time."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from broker.model import TopicPartition
from kctl.model.reassignments import (
    PartitionChange,
    Progress,
    Reassignment,
    Reassignments,
    ReplicaSizes,
)

RATE_SAMPLES: Final = 12
"""Samples over which the rate is averaged: it follows changes without jumping."""


def copied_bytes(reassignment: Reassignment, sizes: ReplicaSizes) -> tuple[int, int]:
    """Bytes that the added replicas hold, and bytes that they will hold when complete."""
    partition = reassignment.partition
    full = max((sizes.get((partition, broker), 0) for broker in reassignment.sources), default=0)
    copied = sum(min(full, sizes.get((partition, b), 0)) for b in reassignment.adding)
    return copied, full * len(reassignment.adding)


class ProgressMeter:
    """Turns samples of a run (reassignments in progress, replica sizes) into `Progress`.

    Invariant: `done_bytes` never decreases, even if segments are deleted while they are copied.
    """

    def __init__(self, changes: Iterable[PartitionChange]) -> None:
        self._changes = {change.partition: change for change in changes}
        self._done: set[TopicPartition] = set()
        """Partitions whose reassignment has ended."""
        self._samples: deque[tuple[float, int]] = deque(maxlen=RATE_SAMPLES)
        """(time in seconds, done bytes). *Invariant*: both values never decrease."""
        self._done_bytes = 0

    @property
    def done_bytes(self) -> int:
        """Bytes copied so far."""
        moved = sum(self._changes[partition].move_bytes for partition in self._done)
        return max(self._done_bytes, moved)

    @property
    def done_partitions(self) -> int:
        """Partitions whose reassignment has ended."""
        return len(self._done)

    def finished(self, partitions: Iterable[TopicPartition]) -> None:
        """Record that the reassignments of these partitions have ended."""
        self._done.update(partitions)

    def sample(self, now_s: float, in_progress: Reassignments, sizes: ReplicaSizes) -> Progress:
        """The progress at `now_s`."""
        partial = [
            min(copied_bytes(one, sizes)[0], self._changes[tp].move_bytes)
            for tp, one in in_progress.items()
            if tp in self._changes and tp not in self._done
        ]
        done_bytes = sum(self._changes[tp].move_bytes for tp in self._done) + sum(partial)
        self._done_bytes = max(self._done_bytes, done_bytes)
        self._samples.append((now_s, self._done_bytes))
        return Progress(
            len(self._done),
            len(self._changes),
            self._done_bytes,
            sum(change.move_bytes for change in self._changes.values()),
            self._rate(),
        )

    def _rate(self) -> float | None:
        (first_s, first), (last_s, last) = self._samples[0], self._samples[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None
