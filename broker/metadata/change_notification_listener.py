"""Kafka's ZkNodeChangeNotificationListener: sequence nodes that make brokers read something again.

A broker or tool that changes a config or an ACL creates a notification, a sequence node, so that
its number is greater than that of all before. Brokers watch the parent and process each
notification once, in order. As it is not known when all brokers have done so, notifications are
kept for 15 minutes; every broker that processes a newer one deletes those that are older.
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


class ChangeNotificationListener:
    """Processes the notifications below one node.

    Field `_process`: called with the data of each new notification.
    Field `_last`: the number of the last one that was processed, or existed at the start.
    Invariant: grows only.
    Field `_changed`: set when the watch fired and the children have not been read since.
    """

    def __init__(
        self,
        store: MetadataStore,
        parent: str,
        process: Callable[[bytes | None], Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._store = store
        self._parent = parent
        self._process = process
        self._clock = clock
        self._last = -1
        self._changed = asyncio.Event()
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Process every notification from now on.

        The caller must read the current state after this returns: earlier notifications are not
        processed.
        """
        self._watch = self._store.watch_children(self._parent, self._on_change)
        self._last = max(map(_number, await self._notifications()), default=-1)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop processing notifications."""
        if self._watch is not None:
            self._watch.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _on_change(self, _: WatchEvent) -> None:
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                names = await self._notifications()
                await self._process_new(names)
                await self._purge_obsolete(names)
            except StoreError as error:  # the watch fires again in the next session
                logger.warning("Failed to read notifications parent=%s: %s", self._parent, error)

    async def _notifications(self) -> list[str]:
        try:
            return sorted(await self._store.children(self._parent), key=_number)
        except NoNode:
            return []

    async def _process_new(self, names: Iterable[str]) -> None:
        for name in names:
            if _number(name) > self._last:
                with suppress(NoNode):  # expired, and deleted by another broker
                    await self._process_one((await self._store.get(join(self._parent, name))).data)
                self._last = _number(name)

    async def _process_one(self, data: bytes | None) -> None:
        try:
            await self._process(data)
        except StoreError:
            raise
        except Exception:  # a malformed notification must not stop the ones after it
            logger.exception("Error processing notification parent=%s data=%s", self._parent, data)

    async def _purge_obsolete(self, names: Iterable[str]) -> None:
        """Delete expired notifications; `names` is sorted by age, oldest first."""
        for name in names:
            with suppress(NoNode):  # other brokers delete them too
                path = join(self._parent, name)
                stat = await self._store.exists(path)
                if stat is not None and self._clock.now_ms() - stat.ctime <= EXPIRATION_MS:
                    return
                await self._store.delete(path)


def _number(name: str) -> int:
    return int(name[-_NUM_DIGITS:])
