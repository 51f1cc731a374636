"""Notes of changes: sequence nodes that tell every running broker to read something again.

Whoever changes a config or an ACL leaves a note, whose number grows; brokers watch the notes'
parent and follow each once, in order. Nobody knows when all have, so a note stays for a quarter of
an hour, and whoever comes by takes old ones away.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

from broker.clock import Clock
from broker.metadata.errors import NoNode, StoreError
from broker.metadata.store import MetadataStore, Watch, WatchEvent, join

logger = logging.getLogger(__name__)

EXPIRATION_MS: Final = 15 * 60 * 1000
_NUM_DIGITS: Final = 10


class ChangeNotes:
    """Follows the notes below one node.

    Field `_last`: the number of the last note that was followed, or was there before us.
    """

    def __init__(
        self,
        store: MetadataStore,
        parent: str,
        follow: Callable[[bytes | None], Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._store = store
        self._parent = parent
        self._follow = follow
        self._clock = clock
        self._last = -1
        self._news = asyncio.Event()
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Follow every note from now on; what they tell of must be read after this returns."""
        self._watch = self._store.watch_children(self._parent, self._changed)
        self._last = max(map(_number, await self._notes()), default=-1)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Follow no more."""
        if self._watch is not None:
            self._watch.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _changed(self, _: WatchEvent) -> None:
        self._news.set()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                notes = await self._notes()
                await self._follow_new(notes)
                await self._remove_old(notes)
            except StoreError as error:  # the next session begins with news
                logger.warning("notes could not be read parent=%s: %s", self._parent, error)

    async def _notes(self) -> list[str]:
        try:
            return sorted(await self._store.children(self._parent), key=_number)
        except NoNode:
            return []

    async def _follow_new(self, notes: Iterable[str]) -> None:
        for name in notes:
            if _number(name) > self._last:
                with suppress(NoNode):  # so old that another broker has taken it away
                    await self._follow_one((await self._store.get(join(self._parent, name))).data)
                self._last = _number(name)

    async def _follow_one(self, data: bytes | None) -> None:
        try:
            await self._follow(data)
        except StoreError:
            raise
        except Exception:  # one bad note must not be the last one
            logger.exception("a note could not be followed parent=%s note=%s", self._parent, data)

    async def _remove_old(self, notes: Iterable[str]) -> None:
        """Notes are in the order of their age: the first that is young ends it."""
        for name in notes:
            with suppress(NoNode):  # others do the same
                path = join(self._parent, name)
                stat = await self._store.exists(path)
                if stat is not None and self._clock.now_ms() - stat.ctime <= EXPIRATION_MS:
                    return
                await self._store.delete(path)


def _number(name: str) -> int:
    return int(name[-_NUM_DIGITS:])
