"""The purgatory: holds requests that wait for a condition, until it is met or their time is up.

A `DelayedOperation` ends in two steps. It is *completed* when its condition is met or its deadline
has passed; that only enters it in the action queue. Its callbacks *run* later, from the queue:

    completed by a request        right after that request's handler, before its response is encoded
    completed outside of one      in the next iteration of the event loop

Futures are not sufficient. Their callbacks always run in the next iteration, after the producer's
response has been encoded and sent, so a consumer at the log end would see a record later than its
producer sees the acknowledgement. The first step changes nothing that a caller could be iterating
over, so it may be taken anywhere; the second sees all effects of the request at once. Kafka's
ActionQueue exists for the same reasons.

Timers are shared: deadlines within one tick (4 ms, more for long waits) use one event-loop timer.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any, Final

_TICK_S: Final = 0.004
_MAX_TICKS: Final = 256
"""A request may wait one tick longer than it asked for. Ticks are longer for long waits, so that
there are never more than this many timers of one tick length: a timer stays with the event loop
until it expires, even if every operation that it was made for has been completed before."""

_MAX_BEFORE_RESPONSE: Final = 4
"""Operations that run before the response to the request that completed them. The others follow in
later iterations of the event loop: a response must not wait for hundreds of consumers."""


class DelayedOperation:
    """One request that waits. A connection uses it like a future.

    Subclasses say what it waits for (`try_complete`) and what it must release (`on_complete`).

    Field `_expiring`: the operations with the same deadline. Invariant: holds this one until it is
    completed or cancelled.
    Field `is_completed`: the condition was met, the deadline has passed, or it was cancelled.
    Field `_has_run`: the callbacks were run. Invariant: then it is completed and not in the queue,
    or in the queue without effect.
    """

    __slots__ = (
        "_action_queue",
        "_callbacks",
        "_expiring",
        "_has_run",
        "_is_cancelled",
        "is_completed",
    )

    def __init__(self, purgatory: "Purgatory", deadline_s: float) -> None:
        self._action_queue = purgatory.action_queue
        self._callbacks: list[Callable[[Any], object]] = []
        self.is_completed = self._has_run = self._is_cancelled = False
        self._expiring = purgatory.expiring_at(deadline_s)
        self._expiring[self] = None

    def try_complete(self) -> bool:
        """Complete the operation if its condition is met; returns whether this call did so."""
        return False

    def on_complete(self) -> None:
        """Release what the operation holds; called once, just before the callbacks."""

    def force_complete(self) -> bool:
        """Complete the operation, whatever its condition; False if it was completed before."""
        if self.is_completed:
            return False
        self.is_completed = True
        self._expiring.pop(self, None)
        self._action_queue.add(self)
        return True

    def cancel(self) -> None:
        """End the wait because its client has gone; the callbacks run at once."""
        if not self._has_run:
            self.is_completed = self._is_cancelled = True
            self._expiring.pop(self, None)
            self.run()

    def cancelled(self) -> bool:
        """Whether the wait was ended by `cancel`."""
        return self._is_cancelled

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Call `callback` with this operation when it runs; soon, if it has run already."""
        if self._has_run:
            asyncio.get_running_loop().call_soon(callback, self)
        else:
            self._callbacks.append(callback)

    def run(self) -> None:
        """Run the callbacks, unless that was done; called by the action queue."""
        if not self._has_run:
            self._has_run = True
            self.on_complete()
            # Drop the references: callbacks refer to the request, and the request to this
            # operation. Left in place, only the garbage collector could free them.
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(self)

    def __await__(self) -> Generator[Any, None, None]:
        """Wait in a task; if the task is cancelled, so is the operation."""
        future = asyncio.get_running_loop().create_future()
        self.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        try:
            yield from future
        except asyncio.CancelledError:
            self.cancel()
            raise


class ActionQueue:
    """Completed operations whose callbacks have not run, in order of completion.

    Field `_is_held`: a request is being handled; its end runs the queue.
    Invariant: while it is not held and not empty, an event-loop callback is scheduled to run it.
    """

    __slots__ = ("_is_held", "_operations")

    def __init__(self) -> None:
        self._operations: list[DelayedOperation] = []
        self._is_held = False

    def add(self, operation: DelayedOperation) -> None:
        """Run the operation after the present request, or in the next event-loop iteration."""
        if not self._operations and not self._is_held:
            asyncio.get_running_loop().call_soon(self._run)
        self._operations.append(operation)

    def hold(self) -> None:
        """A request begins: run nothing before `try_complete_actions`."""
        self._is_held = True

    def try_complete_actions(self) -> None:
        """The request has been handled: run the operations that it completed."""
        self._is_held = False
        if self._operations:
            self._run()

    def _run(self) -> None:
        operations = self._operations
        now = operations[:_MAX_BEFORE_RESPONSE]
        self._operations = operations[_MAX_BEFORE_RESPONSE:]
        if self._operations:
            asyncio.get_running_loop().call_soon(self._run)
        for operation in now:
            operation.run()


class Purgatory:
    """The deadlines of all operations that wait, and the queue of those that are completed.

    Which condition completes an operation is not known here: partitions have `Watchers`.
    """

    __slots__ = ("_by_deadline", "action_queue")

    def __init__(self) -> None:
        self.action_queue = ActionQueue()
        self._by_deadline: dict[float, dict[DelayedOperation, None]] = {}
        """Operations by deadline, rounded up to a tick. Invariant: one event-loop timer each."""

    def sizes(self) -> Counter[type[DelayedOperation]]:
        """How many operations of each type wait. May be called in any thread."""
        by_deadline = list(self._by_deadline.values())
        return Counter(type(operation) for waiting in by_deadline for operation in list(waiting))

    def expiring_at(self, deadline_s: float) -> dict[DelayedOperation, None]:
        """The operations that expire at `deadline_s` (event-loop time) or a tick later."""
        loop, tick_s = asyncio.get_running_loop(), _TICK_S
        left_s = deadline_s - loop.time()
        while left_s > _MAX_TICKS * tick_s:
            tick_s *= 4
        time_s = (int(deadline_s / tick_s) + 1) * tick_s
        expiring = self._by_deadline.get(time_s)
        if expiring is None:
            expiring = self._by_deadline[time_s] = {}
            loop.call_at(time_s, self._expire, time_s)
        return expiring

    def _expire(self, time_s: float) -> None:
        expiring = self._by_deadline.pop(time_s)
        for operation in list(expiring):
            operation.force_complete()
