"""Who becomes the controller: the broker that makes /controller. Two ways to get there.

`first`, Kafka's own: everybody tries to make the node, the first one wins, the others watch it and
try again when it is gone. Any of them may be next.

`fair`: everybody stands in a queue, by a sequential ephemeral node each, and only the first in the
queue tries to make /controller; each of the others watches the one before it. When the controller
dies, one broker is woken instead of all, and it is the one that has waited longest. As /controller
still decides, brokers with either way, Apache Kafka's among them, can share a cluster.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from broker.clock import Clock
from broker.metadata.errors import BadVersion, ConnectionLoss, NodeExists, NoNode, StoreError
from broker.metadata.recursive import ensure_path
from broker.metadata.store import (
    Check,
    Create,
    Delete,
    EventKind,
    MetadataStore,
    SetData,
    Stat,
    Watch,
    WatchEvent,
    join,
    name_of,
)
from broker.metadata.znodes.controller import (
    ControllerCandidateZnode,
    ControllerEpochZnode,
    ControllerZnode,
)

logger = logging.getLogger(__name__)


class ElectedEpoch(NamedTuple):
    """A won election: the controller epoch, and the version of its node, which fences others."""

    epoch: int
    version: int


class Elector(ABC):
    """Tries to make this broker the controller, when asked to and when it is its turn."""

    def __init__(self, store: MetadataStore, broker_id: int, clock: Clock) -> None:
        self._store = store
        self._broker_id = broker_id
        self._clock = clock

    async def elect(self) -> ElectedEpoch | None:
        """The epoch if this broker is the controller now; None if another one is, or shall be."""
        if not await self._is_our_turn() or await self._store.exists(ControllerZnode.PATH):
            return None
        known = await self._known_epoch()
        epoch = known.epoch + 1
        controller = ControllerZnode(self._broker_id, self._clock.now_ms())
        try:
            _, stat = await self._store.multi(
                [
                    Create(ControllerZnode.PATH, controller.encode(), ephemeral=True),
                    SetData(
                        ControllerEpochZnode.PATH,
                        ControllerEpochZnode.encode(epoch),
                        known.version,
                    ),
                ]
            )
        except (NodeExists, BadVersion):
            return None
        except ConnectionLoss:
            return await self._outcome(epoch)
        assert isinstance(stat, Stat)  # noqa: S101 - what a SetData results in
        return ElectedEpoch(epoch, stat.version)

    async def _outcome(self, epoch: int) -> ElectedEpoch | None:
        """Whether the election whose answer was lost has been won."""
        stat = await self._store.exists(ControllerZnode.PATH)
        known = await self._known_epoch()
        is_ours = stat is not None and stat.ephemeral_owner == self._store.session.id
        return known if is_ours and known.epoch == epoch else None

    async def _known_epoch(self) -> ElectedEpoch:
        try:
            data, stat = await self._store.get(ControllerEpochZnode.PATH)
        except NoNode:
            initial = ControllerEpochZnode.encode(ControllerEpochZnode.INITIAL)
            try:
                await self._store.create(ControllerEpochZnode.PATH, initial)
            except NodeExists:
                logger.debug("another broker made %s", ControllerEpochZnode.PATH)
            return await self._known_epoch()
        return ElectedEpoch(ControllerEpochZnode.decode(data), stat.version)

    @abstractmethod
    async def _is_our_turn(self) -> bool:
        """Whether to try at all."""

    async def resign(self, elected: ElectedEpoch) -> None:
        """Let another broker be elected; nothing if that has happened already."""
        try:
            await self._store.multi(
                [
                    Check(ControllerEpochZnode.PATH, elected.version),
                    Delete(ControllerZnode.PATH),
                ]
            )
        except StoreError as error:
            logger.info("controllership has ended without resigning: %s", error)

    def close(self) -> None:  # noqa: B027 - not every way has something to wait for
        """Wait for nothing any more."""


class FirstElector(Elector):
    """The first to make the node wins."""

    async def _is_our_turn(self) -> bool:
        return True


class FairElector(Elector):
    """The one that has waited longest is next.

    Field `_on_turn`: called when the one before us in the queue is gone.
    """

    def __init__(
        self, store: MetadataStore, broker_id: int, clock: Clock, on_turn: Callable[[], None]
    ) -> None:
        super().__init__(store, broker_id, clock)
        self._on_turn = on_turn
        self._place: str | None = None
        self._watch: Watch | None = None

    async def _is_our_turn(self) -> bool:
        queue = await self._queue()
        if self._place not in queue:
            await self._stand_in_line()
            queue = await self._queue()
        position = queue.index(self._place) if self._place in queue else len(queue)
        self.close()
        if position == 0:
            return True
        before = join(ControllerCandidateZnode.PARENT, queue[position - 1])
        self._watch = self._store.watch_data(before, self._changed)
        # It may have gone between the two: then nobody would tell.
        return await self._store.exists(before) is None and await self._is_our_turn()

    async def _queue(self) -> list[str]:
        try:
            return await self._store.children(ControllerCandidateZnode.PARENT)
        except NoNode:
            return []

    async def _stand_in_line(self) -> None:
        await ensure_path(self._store, ControllerCandidateZnode.PARENT)
        made = await self._store.create(
            ControllerCandidateZnode.PREFIX,
            ControllerCandidateZnode.encode(self._broker_id),
            ephemeral=True,
            sequence=True,
        )
        self._place = name_of(made)

    def _changed(self, event: WatchEvent) -> None:
        if event.kind is EventKind.DELETED:
            self._on_turn()

    async def resign(self, elected: ElectedEpoch) -> None:
        """See Elector; this broker goes to the end of the queue."""
        place, self._place = self._place, None
        if place is not None:
            try:
                await self._store.delete(join(ControllerCandidateZnode.PARENT, place))
            except StoreError as error:
                logger.info("the place in the queue is gone already: %s", error)
        await super().resign(elected)

    def close(self) -> None:
        """See Elector."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
