"""The operations that wait in the purgatory for replicas: produce, delete records, and fetch."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from broker.replica.partition import Partition
from broker.replica.purgatory import DelayedOperation, Purgatory


class RequiredOffset(NamedTuple):
    """A partition, and the offset that its high or low watermark must reach."""

    partition: Partition
    offset: int
    required_acks: int = -1
    """1: wait only until the log is flushed up to the offset (`flush.messages`)."""


class _DelayedByOffsets(DelayedOperation):
    """Waits until every partition has reached its offset.

    Field `_pending`: partitions that had not reached it when they were last checked. Invariant:
    one that has is never checked again, whatever happens to it later.
    Field `_watched`: the partitions that notify this operation, until it runs.
    """

    __slots__ = ("_pending", "_watched")

    def __init__(
        self, required: Iterable[RequiredOffset], timeout_s: float, purgatory: Purgatory
    ) -> None:
        super().__init__(purgatory, asyncio.get_running_loop().time() + timeout_s)
        self._pending = list(required)
        self._watched: list[Partition] = []
        if not self.try_complete():
            self._watched = [one.partition for one in self._pending]
            for partition in self._watched:
                partition.watchers.operations[self] = None

    @staticmethod
    def must_wait(partition: Partition, offset: int, required_acks: int) -> bool:
        """Whether the partition has not reached the offset, and still can."""
        raise NotImplementedError

    def try_complete(self) -> bool:
        """Complete the operation if no partition has to wait any more."""
        pending = self._pending
        while pending and not self.must_wait(*pending[-1]):
            pending.pop()
        return not pending and self.force_complete()

    def on_complete(self) -> None:
        """Stop partitions from notifying this operation."""
        for partition in self._watched:
            partition.watchers.operations.pop(self, None)


class DelayedProduce(_DelayedByOffsets):
    """A produce request with acks=all waits until the ISR has what was appended.

    With acks=1 only if `flush.messages` requires a flush.

    `Partition.acks_reached` then gives the error code of every partition.
    """

    __slots__ = ()

    @staticmethod
    def must_wait(partition: Partition, offset: int, required_acks: int) -> bool:
        """Whether the high watermark is below the offset and this broker still leads."""
        return partition.acks_reached(offset, required_acks) is None


class DelayedDeleteRecords(_DelayedByOffsets):
    """A DeleteRecords request waits until the logs of all live replicas start at the offset."""

    __slots__ = ()

    @staticmethod
    def must_wait(partition: Partition, offset: int, _required_acks: int) -> bool:
        """Whether the low watermark is below the offset and this broker still leads."""
        return partition.is_leader and partition.low_watermark < offset


class DelayedFetch(DelayedOperation):
    """A fetch waits until one of its partitions changes.

    Its fetch session completes it. Whether there are now `min_bytes` only reading can show: the
    handler reads what has changed, and may wait again with another DelayedFetch.
    """

    __slots__ = ()
