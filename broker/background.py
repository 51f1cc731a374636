"""Work that comes round: retention, flushes, checkpoints. In threads, so the loop never waits."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class Background:
    """Periodic jobs of a broker. A job that fails is logged and comes round again."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def every(self, seconds: float, work: Callable[[], object], *, in_thread: bool = True) -> None:
        """Run `work` again and again with pauses of `seconds`, first after one such pause."""
        self._tasks.append(asyncio.create_task(self._repeat(seconds, work, in_thread)))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something once, that nobody waits for."""
        task = asyncio.create_task(self._once(work))
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)

    async def _once(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            logger.exception("background work failed work=%s", work)

    async def _repeat(self, seconds: float, work: Callable[[], object], in_thread: bool) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                if in_thread:
                    await _in_thread(work)
                else:
                    work()
            except Exception:  # one bad round must not be the last one
                logger.exception("background work failed work=%s", work.__qualname__)

    async def stop(self) -> None:
        """Start no new round, and wait for those under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _in_thread(work: Callable[[], object]) -> None:
    """Run `work` in a thread; whoever is cancelled meanwhile waits for it to end all the same."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if error := running.exception():
            logger.error("background work failed at the end", exc_info=error)
        raise
