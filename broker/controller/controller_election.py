"""The controller election: the broker that creates /controller wins. There are two ways to try.

`first`, Kafka's own: every broker tries to create the node and the first one wins; the others watch
it and try again when it is deleted. Any of them may be next.

`fair`: each broker joins a queue with a sequential ephemeral node, and only the first in the queue
tries to create /controller; each of the others watches the node before its own. When the controller
dies, one broker is woken instead of all, the one that has waited longest. As /controller decides in
both, brokers with either setting, and Apache Kafka's, can share a cluster.

/controller is created and /controller_epoch raised in one transaction. The version of the latter
fences all writes of the new controller: the next election changes it.
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
    """A won election: the controller epoch, and the version of its node, which fences writes."""

    epoch: int
    version: int


class ControllerElection(ABC):
    """Tries to make this broker the controller."""

    def __init__(self, store: MetadataStore, broker_id: int, clock: Clock) -> None:
        self._store = store
        self._broker_id = broker_id
        self._clock = clock

    async def elect(self) -> ElectedEpoch | None:
        """Try once; the epoch if this broker is the controller now, None if another one is."""
        if not await self._claim_turn() or not await self._delete_own_leftover():
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

    async def _delete_own_leftover(self) -> bool:
        """Delete a node that this session left behind; return whether no broker is the controller.

        A controller that resigned while its session lived on still owns the node. No other
        broker can be elected then, and without this the cluster would stay without a controller.
        """
        try:
            data, stat = await self._store.get(ControllerZnode.PATH)
            if (
                stat.ephemeral_owner != self._store.session.id
                or ControllerZnode.decode(data).broker_id != self._broker_id
            ):
                return False
            await self._store.delete(ControllerZnode.PATH, stat.version)
        except (NoNode, BadVersion):
            return True  # deleted by another: creating it decides
        return True

    async def _outcome(self, epoch: int) -> ElectedEpoch | None:
        """Whether the election whose response was lost has been won."""
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
                logger.debug("another broker created %s", ControllerEpochZnode.PATH)
            return await self._known_epoch()
        return ElectedEpoch(ControllerEpochZnode.decode(data), stat.version)

    @abstractmethod
    async def _claim_turn(self) -> bool:
        """Return whether this broker may try now; otherwise arrange to be called back."""

    async def resign(self, elected: ElectedEpoch) -> None:
        """Delete /controller, so that another broker is elected; no error if one has been."""
        try:
            await self._store.multi(
                [
                    Check(ControllerEpochZnode.PATH, elected.version),
                    Delete(ControllerZnode.PATH),
                ]
            )
        except StoreError as error:
            logger.info("Not deleting %s, it is not ours: %s", ControllerZnode.PATH, error)

    def close(self) -> None:  # noqa: B027 - only the fair election has a watch
        """Cancel what this election waits for."""


class FirstControllerElection(ControllerElection):
    """The first broker that creates the node wins."""

    async def _claim_turn(self) -> bool:
        return True


class FairControllerElection(ControllerElection):
    """The broker that has waited longest is next.

    Field `_on_turn`: called when the broker before this one in the queue is gone.
    Field `_place`: the name of this broker's node in the queue; None if it has none.
    Field `_watch`: on the node before it; None while this broker is the first.
    """

    def __init__(
        self, store: MetadataStore, broker_id: int, clock: Clock, on_turn: Callable[[], None]
    ) -> None:
        super().__init__(store, broker_id, clock)
        self._on_turn = on_turn
        self._place: str | None = None
        self._watch: Watch | None = None

    async def _claim_turn(self) -> bool:
        queue = await self._queue()
        if self._place not in queue:
            await self._join_queue()
            queue = await self._queue()
        position = queue.index(self._place) if self._place in queue else len(queue)
        self.close()
        if position == 0:
            return True
        before = join(ControllerCandidateZnode.PARENT, queue[position - 1])
        self._watch = self._store.watch_data(before, self._changed)
        # It may have been deleted before the watch was set: then no event would come.
        return await self._store.exists(before) is None and await self._claim_turn()

    async def _queue(self) -> list[str]:
        try:
            return await self._store.children(ControllerCandidateZnode.PARENT)
        except NoNode:
            return []

    async def _join_queue(self) -> None:
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
        """See ControllerElection; this broker rejoins the queue at its end."""
        place, self._place = self._place, None
        if place is not None:
            try:
                await self._store.delete(join(ControllerCandidateZnode.PARENT, place))
            except StoreError as error:
                logger.info("Already removed from the controller candidates: %s", error)
        await super().resign(elected)

    def close(self) -> None:
        """See ControllerElection."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
