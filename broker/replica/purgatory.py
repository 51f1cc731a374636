"""Where fetches wait until there is enough for them, or their time is up.

A future would do, but it is the event loop that calls who waits for one, in its next turn. So a
consumer at the end of a log got a record only after its producer had been answered: the encoding of
that answer, its way through the socket and the turn, each as long as the reading itself. Here those
that a request lets go are called out when it has been carried out as a whole, so that they see all
of it at once, and before it is answered. (Kafka's action queue, which has threads for both.)

Timers are shared: those whose time is up within the same tick, of a few milliseconds, have one.

Who waits for replicas (acks=all) does so with a future, in `acks`: mostly it is a task that does.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Final

_TICK_S: Final = 0.004
_MAX_TICKS: Final = 256
"""A request may wait a tick longer than it asked for. Ticks are longer for long waits, so that
there are never more than so many timers of a kind: a timer outlasts those that it was made for."""

_BEFORE_THE_ANSWER: Final = 4
"""So many are called out before a request is answered, and the others soon after: its answer shall
not wait for hundreds of consumers."""


class Waiter:
    """A request that waits; to a connection it is what a future is.

    Field `_due`: those whose time is up together with its own.
    """

    __slots__ = ("_callbacks", "_due", "_is_called_out", "_is_cancelled", "_is_let_go", "_let_go")

    def __init__(self, let_go: Callable[["Waiter"], None], due: "set[Waiter]") -> None:
        self._let_go = let_go
        self._due = due
        self._callbacks: list[Callable[[Any], object]] = []
        self._is_let_go = self._is_called_out = self._is_cancelled = False
        due.add(self)

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Call it, with this as its argument, when the wait is over."""
        if self._is_called_out:
            asyncio.get_running_loop().call_soon(callback, self)
        else:
            self._callbacks.append(callback)

    def let_go(self) -> None:
        """What it waits for has happened; may be said again."""
        if not self._is_let_go:
            self._is_let_go = True
            self._due.discard(self)
            self._let_go(self)

    def cancel(self) -> None:
        """Nobody cares any more; the callbacks are told so."""
        if not self._is_called_out:
            self._is_let_go = self._is_cancelled = True
            self._due.discard(self)
            self.call_out()

    def cancelled(self) -> bool:
        """Whether the wait ended because nobody cared any more."""
        return self._is_cancelled

    def call_out(self) -> None:
        """Call the callbacks: the purgatory does, once."""
        if not self._is_called_out:
            self._is_called_out = True
            # Let go of them: they hold what holds this, and only the garbage collector would see.
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(self)

    def __await__(self) -> Generator[Any, None, None]:
        future = asyncio.get_running_loop().create_future()
        self.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        try:
            yield from future
        except asyncio.CancelledError:
            self.cancel()
            raise


class Purgatory:
    """All that wait, and those that wait no longer but have not been called out yet."""

    __slots__ = ("_by_time", "_is_collecting", "_let_go")

    def __init__(self) -> None:
        self._by_time: dict[float, set[Waiter]] = {}
        """Those whose time is up then. Invariant: the event loop has one timer for each time."""
        self._let_go: list[Waiter] = []
        self._is_collecting = False

    def wait_until(self, deadline_s: float) -> Waiter:
        """A new waiter, let go at that time of the event loop at the latest."""
        loop, tick_s = asyncio.get_running_loop(), _TICK_S
        left_s = deadline_s - loop.time()
        while left_s > _MAX_TICKS * tick_s:
            tick_s *= 4
        time_s = (int(deadline_s / tick_s) + 1) * tick_s
        due = self._by_time.get(time_s)
        if due is None:
            due = self._by_time[time_s] = set()
            loop.call_at(time_s, self._expire, time_s)
        return Waiter(self._add, due)

    def _expire(self, time_s: float) -> None:
        due = self._by_time.pop(time_s)
        while due:
            due.pop().let_go()

    def _add(self, waiter: Waiter) -> None:
        if not self._let_go and not self._is_collecting:
            asyncio.get_running_loop().call_soon(self._call_out)
        self._let_go.append(waiter)

    def collect(self) -> None:
        """A request is carried out from now on: call nobody out before `complete`."""
        self._is_collecting = True

    def complete(self) -> None:
        """The request is carried out: call out whom it has let go."""
        self._is_collecting = False
        if self._let_go:
            self._call_out()

    def _call_out(self) -> None:
        waiters = self._let_go
        now, self._let_go = waiters[:_BEFORE_THE_ANSWER], waiters[_BEFORE_THE_ANSWER:]
        if self._let_go:
            asyncio.get_running_loop().call_soon(self._call_out)
        for waiter in now:
            waiter.call_out()
