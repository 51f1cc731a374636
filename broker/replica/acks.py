"""Waiting for replicas: until the ISR has what was appended (acks=all), or anything like it.

A wait is one future, and no task: the partitions that it waits for look after it whenever their
high watermark moves. (Kafka's purgatory, without the reaper.)
"""

import asyncio
from collections.abc import Callable, Iterable

from broker.replica.partition import Partition

Appended = tuple[Partition, int]
"""A partition, and the high watermark at which what was appended to it is replicated."""

MustWait = Callable[[Partition, int], bool]
"""Whether a partition has not come as far as it is wanted to."""


def wait_for_acks(appended: Iterable[Appended], timeout_s: float) -> "asyncio.Future[None]":
    """Done when `acks_reached` has an answer for each of them, or time is up."""
    return wait_while(_is_unacknowledged, appended, timeout_s)


def wait_while(
    must_wait: MustWait, wanted: Iterable[tuple[Partition, int]], timeout_s: float
) -> "asyncio.Future[None]":
    """Done when none of them, a partition and an offset each, must wait; or when time is up.

    Who does not care any more cancels it.
    """
    waiting = _Waiting(must_wait, wanted)
    if not waiting.done.done():
        waiting.begin(timeout_s)
    return waiting.done


class _Waiting:
    """One wait, for as long as `done` is not.

    Field `_left`: those that must wait, as far as is known. One that need not is never asked again.
    """

    __slots__ = ("_left", "_look", "_moves", "_must_wait", "_timer", "done")

    def __init__(self, must_wait: MustWait, wanted: Iterable[tuple[Partition, int]]) -> None:
        self._must_wait = must_wait
        self._left = list(wanted)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.look()

    def look(self) -> None:
        """A partition has moved, or may have."""
        left = self._left
        while left and not self._must_wait(*left[-1]):
            left.pop()
        if not left:
            self._settle()

    def _settle(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def begin(self, timeout_s: float) -> None:
        """Look again whenever one of them moves, until the time is up."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(timeout_s, self._settle)
        self._look = self.look  # one object, by which it is found again
        self._moves = [partition.moves for partition, _ in self._left]
        for moves in self._moves:
            moves.subscribe(at_high_watermark=self._look)
        self.done.add_done_callback(self._end)

    def _end(self, _: "asyncio.Future[None]") -> None:
        self._timer.cancel()
        for moves in self._moves:
            moves.unsubscribe(self._look)


def _is_unacknowledged(partition: Partition, offset: int) -> bool:
    return partition.acks_reached(offset) is None
