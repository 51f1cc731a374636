"""Background tasks that belong to one object and end with it; long work in slices."""

import asyncio
import gc
import logging
import sys
import time
from collections.abc import Coroutine, Generator
from typing import Any, Final, NamedTuple, TypeVar

from broker.errors import ApiError

logger = logging.getLogger(__name__)

T = TypeVar("T")

SLICE_S: Final = 0.005
"""How long the event loop is held by a slice of long work."""


class TaskSet:
    """Runs coroutines as tasks and keeps a reference to each until it is done.

    Without that reference the garbage collector may drop a task while it runs. A task that fails is
    logged, under the name of what the set does, unless its caller awaits it (`logs_failures=False`)
    or it fails with an ApiError and those are expected (`expects_api_errors=True`).
    """

    def __init__(
        self, name: str, *, logs_failures: bool = True, expects_api_errors: bool = False
    ) -> None:
        self._name = name
        self._logs_failures = logs_failures
        self._expects_api_errors = expects_api_errors
        self._tasks: dict[asyncio.Task[Any], None] = {}
        """In the order of their start. Invariant: exactly the tasks that are not done."""

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine; the task may be awaited or not."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    async def wait(self) -> None:
        """Wait until the tasks that run now are done, whether they fail or not."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def cancel(self) -> None:
        """Cancel all tasks and wait until they are done."""
        for task in list(self._tasks):
            task.cancel()
        await self.wait()

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not self._logs_failures or task.cancelled():
            return
        error = task.exception()
        if error is None or (self._expects_api_errors and isinstance(error, ApiError)):
            return
        logger.error("background task failed task=%s", self._name, exc_info=error)


class Progress(NamedTuple):
    """How far work in slices is."""

    is_done: bool
    result: Any
    """What the work returned; None while it is not done."""


UNFINISHED: Final = Progress(False, None)


async def let_others_run() -> None:
    """End a slice.

    Collects young objects first. Python starts a collection by the number of allocations minus
    deallocations; a large request creates the entries of its response and frees as many of its own,
    so that number stays small while young objects pile up, and one collection of them all would
    take as long as many slices.
    """
    gc.collect(1)
    await asyncio.sleep(0)


class Pauses:
    """Ends a slice of long work when its time is over.

    For loops that await something else as well; `run_in_slices` is for those that do not.
    """

    def __init__(self) -> None:
        self._deadline_s = time.monotonic() + SLICE_S

    async def pause(self) -> None:
        """Let others run, if it is time. To be called every few microseconds."""
        if time.monotonic() >= self._deadline_s:
            await let_others_run()
            self._deadline_s = time.monotonic() + SLICE_S


async def run_in_slices(work: Generator[None, None, Any], max_steps: int = sys.maxsize) -> Progress:
    """Run until the work is done or has taken this many steps.

    If the task is cancelled meanwhile, the work still runs to its end: freeing its intermediate
    results at once may take longer than a slice.
    """
    cancelled: asyncio.CancelledError | None = None
    progress = UNFINISHED
    deadline = time.monotonic() + SLICE_S
    for _ in range(max_steps):
        try:
            next(work)
        except StopIteration as done:
            progress = Progress(True, done.value)
            break
        if time.monotonic() >= deadline:
            try:
                await let_others_run()
            except asyncio.CancelledError as error:
                cancelled = error
            deadline = time.monotonic() + SLICE_S
    if cancelled is not None:
        raise cancelled
    return progress
