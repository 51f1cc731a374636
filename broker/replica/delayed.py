"""Waiting for partitions to move: Kafka's purgatory, as one `await`.

A partition moves in two ways: its log end grows, which followers wait for, and its high watermark
rises, which consumers and producers with acks=all wait for. (A leader without followers moves both
at once.) Whatever else happens to it, a new leader or its end, concerns them all.

Who waits once takes a Ticket on every partition it cares for, looks once more at what it waits for
(it may have happened meanwhile), and awaits the ticket. Who cares for long subscribes with a
callback. A partition never polls and is never polled.
"""

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

Callback = Callable[[], None]


class Moves:
    """One partition's side: whom to call when it moves.

    Callbacks only take a note: they neither subscribe nor unsubscribe anybody.
    """

    __slots__ = ("_at_high_watermark", "_at_log_end")

    def __init__(self) -> None:
        self._at_log_end: set[Callback] = set()
        self._at_high_watermark: set[Callback] = set()

    def subscribe(
        self, *, at_log_end: Callback | None = None, at_high_watermark: Callback | None = None
    ) -> None:
        """Call these at every move of that kind, until they are unsubscribed."""
        if at_log_end is not None:
            self._at_log_end.add(at_log_end)
        if at_high_watermark is not None:
            self._at_high_watermark.add(at_high_watermark)

    def unsubscribe(self, *callbacks: Callback) -> None:
        """Call them no more."""
        self._at_log_end.difference_update(callbacks)
        self._at_high_watermark.difference_update(callbacks)

    def wake(self) -> None:
        """Everything may have changed."""
        self.log_end_moved()
        self.high_watermark_moved()

    def log_end_moved(self) -> None:
        """There are more records, not all of them replicated."""
        for callback in self._at_log_end:
            callback()

    def high_watermark_moved(self) -> None:
        """More records are replicated."""
        for callback in self._at_high_watermark:
            callback()


class Ticket:
    """The waiter's side: `with Ticket(moves) as ticket: ... await ticket.moved(seconds)`."""

    def __init__(self, moves: Iterable[Moves], *, at_log_end: bool = False) -> None:
        self._moves = list(moves)
        self._at_log_end = at_log_end
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> Self:
        for moves in self._moves:
            if self._at_log_end:
                moves.subscribe(at_log_end=self._wake)
            else:
                moves.subscribe(at_high_watermark=self._wake)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for moves in self._moves:
            moves.unsubscribe(self._wake)

    def _wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def moved(self, timeout_s: float) -> bool:
        """Whether one of them moved within the time."""
        return await within(self._future, timeout_s)


async def within(future: "asyncio.Future[None]", timeout_s: float) -> bool:
    """Whether the future was set within the time; if not, it is cancelled."""
    timer = asyncio.get_running_loop().call_later(max(timeout_s, 0), future.cancel)
    try:
        await future
    except asyncio.CancelledError:
        if future.cancelled() and not _is_cancelling():
            return False
        raise
    finally:
        timer.cancel()
    return True


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
