"""An event loop on virtual time whose callbacks belong to simulated processes.

Nothing ever waits: when no callback is ready, time jumps to the next timer. Every callback carries
the process it belongs to in its context. Callbacks of a crashed process are dropped, so that no
`finally` of it runs, as after kill -9. Callbacks of a paused process wait until it is resumed, as
under SIGSTOP. Work for threads runs at once on the loop, and its result arrives a little later.
"""

import asyncio
import contextvars
import heapq
import random
from collections.abc import Callable
from typing import Any

MAX_THREAD_DELAY_S = 0.02


class Process:
    """A simulated process: the owner of callbacks, connections and one ZooKeeper session.

    A restarted broker is a new Process: nothing of the old one runs any more.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self._pauses = 0
        self.context = contextvars.copy_context()
        self.context.run(_current.set, self)
        self.on_death: list[Callable[[], None]] = []
        """Called once by `crash`, outside of the process: its connections and session end."""
        self.held: list[asyncio.Handle] = []
        """Callbacks that became due while the process was paused, in order."""
        self.tasks: list[asyncio.Task[Any]] = []
        """Kept for ever: a garbage-collected coroutine would run its `finally` blocks."""

    def crash(self) -> None:
        """kill -9: no further instruction of this process runs."""
        if not self.is_alive:
            return
        self.is_alive = False
        self.held.clear()
        for callback in self.on_death:
            callback()

    @property
    def is_paused(self) -> bool:
        """Whether its callbacks wait."""
        return self._pauses > 0

    def pause(self) -> None:
        """SIGSTOP; pauses nest."""
        self._pauses += 1

    def resume(self) -> None:
        """End one pause; after the last one, run what became due meanwhile."""
        self._pauses -= 1
        if self._pauses:
            return
        held, self.held = self.held, []
        for handle in held:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, SimulatedLoop)
            loop.requeue(handle)

    def __repr__(self) -> str:
        return self.name


_current: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


def current_process() -> Process | None:
    """The process whose callback is running; None for the simulation itself."""
    return _current.get()


class _ProcessHandle(asyncio.Handle):
    """A callback that runs only while its process does."""

    def _run(self) -> None:
        if _may_run(self):
            super()._run()


class _ProcessTimerHandle(asyncio.TimerHandle):
    """A timer that runs only while its process does."""

    def _run(self) -> None:
        if _may_run(self):
            super()._run()


def _may_run(handle: asyncio.Handle) -> bool:
    """Whether the process of a callback runs; a paused process keeps the callback for later."""
    process: Process | None = handle._context.get(_current)  # type: ignore[attr-defined]
    if process is None:
        return True
    if process.is_alive and process.is_paused:
        process.held.append(handle)
        return False
    return process.is_alive


class SimulatedLoop(asyncio.BaseEventLoop):
    """See the module. `rng` decides how long work in threads takes."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._now_s = 0.0
        self._rng = rng
        self._selector = self  # only `select` is used of it
        self._clock_resolution = 1e-9
        self.connect: Callable[..., Any] | None = None
        """The network's `create_connection`."""
        self.on_instant: Callable[[], None] | None = None
        """Called when everything due at one instant has run, before time moves on."""
        self.set_task_factory(_create_task)

    # --- time ------------------------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds since the start of the run."""
        return self._now_s

    def select(self, timeout: float | None) -> list[object]:
        """Called when nothing is ready: move time to the next timer instead of waiting."""
        if timeout is None:
            raise RuntimeError("the simulation has nothing left to do: a deadlock")
        if timeout > 0 and self.on_instant is not None:
            self.on_instant()
        self._now_s += max(timeout, 0.0)
        return []

    def _process_events(self, event_list: list[object]) -> None:
        """No sockets, so no events."""

    def _write_to_self(self) -> None:
        """There is no other thread to wake."""

    # --- callbacks -------------------------------------------------------------------------------

    def _call_soon(self, callback: Any, args: Any, context: Any) -> asyncio.Handle:
        handle = _ProcessHandle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(  # type: ignore[override]  # typeshed's form needs a TypeVarTuple
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """Part of asyncio's loop."""
        timer = _ProcessTimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def requeue(self, handle: asyncio.Handle) -> None:
        """Run a callback that was held back."""
        if not handle.cancelled():
            self._ready.append(handle)  # type: ignore[attr-defined]

    # --- threads, network ------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]  # typeshed's form needs a TypeVarTuple
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Run the work now; its result arrives within MAX_THREAD_DELAY_S."""
        future: asyncio.Future[Any] = self.create_future()
        try:
            result, error = func(*args), None
        except BaseException as raised:  # noqa: BLE001  # handed to the caller, as a thread does
            result, error = None, raised
        self.call_later(self._rng.uniform(0, MAX_THREAD_DELAY_S), _finish, future, result, error)
        return future

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Part of asyncio's loop: connect over the simulated network."""
        assert self.connect is not None
        return await self.connect(*args, **kwargs)


def _finish(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _create_task(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> "asyncio.Task[Any]":
    """A task that is kept as long as its process, and that may be left unfinished."""
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **kwargs)
    context = kwargs.get("context")
    process = context.get(_current) if context is not None else _current.get()
    if process is not None:
        process.tasks.append(task)
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    return task
