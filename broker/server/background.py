"""Periodic work: retention, flushes, checkpoints. In threads, so that the loop never waits."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from broker.tasks import TaskSet

logger = logging.getLogger(__name__)


class Background:
    """Periodic jobs of a broker. A job that fails is logged and runs again at its next time."""

    def __init__(self) -> None:
        self._tasks = TaskSet("background work")

    def every(self, seconds: float, work: Callable[[], object], *, in_thread: bool = True) -> None:
        """Run `work` repeatedly with pauses of `seconds`, first after one such pause."""
        self._tasks.spawn(self._repeat(seconds, work, in_thread))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine once, without waiting for it."""
        self._tasks.spawn(work)

    async def _repeat(self, seconds: float, work: Callable[[], object], in_thread: bool) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                if in_thread:
                    await _in_thread(work)
                else:
                    work()
            except Exception:  # one failure must not end the job
                logger.exception("periodic work failed work=%s", work.__qualname__)

    async def stop(self) -> None:
        """Start no further work, and wait for work that is running."""
        await self._tasks.cancel()


async def _in_thread(work: Callable[[], object]) -> None:
    """Run `work` in a thread. When cancelled, wait until it has ended anyway."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if error := running.exception():
            logger.error("periodic work failed during shutdown", exc_info=error)
        raise
