"""A broker's place in the cluster: its tree, the cluster's id, its own id, its registration.

The registration is an ephemeral node, so it lasts as long as the session of the store. When the
session expires, the cluster takes the broker for dead; it registers again as soon as there is a new
session, and from then on lives in a new broker epoch (KIP-380): what was asked of the old one is
refused, and whoever decides in the cluster sees that the broker was gone for a moment.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import ConnectionLoss, NodeExists, NoNode, SessionExpired
from broker.metadata.recursive import ensure_path
from broker.metadata.session import SessionState
from broker.metadata.store import MetadataStore, WatchEvent, parent_of
from broker.metadata.znodes.brokers import BROKER_SEQUENCE_ID_PATH, BrokerIdZnode
from broker.metadata.znodes.cluster import ClusterIdZnode
from broker.metadata.znodes.layout import persistent_paths
from broker.model import BrokerEpoch, Uuid

logger = logging.getLogger(__name__)

_PROBE_TIMEOUT_S: Final = 1.0
_RETRY_S: Final = 0.2


async def make_persistent_paths(store: MetadataStore) -> None:
    """Create what every cluster's tree has, where it is missing."""
    await asyncio.gather(*(ensure_path(store, path) for path in persistent_paths()))


async def registered_cluster_id(store: MetadataStore) -> str | None:
    """The cluster's id; None before its first broker."""
    try:
        return ClusterIdZnode.decode((await store.get(ClusterIdZnode.PATH)).data)
    except NoNode:
        return None


async def make_cluster_id(store: MetadataStore, proposed: str | None) -> str:
    """The cluster's id; a new cluster gets the `proposed` one, or a random one."""
    await ensure_path(store, parent_of(ClusterIdZnode.PATH))
    with contextlib.suppress(NodeExists):
        await store.create(
            ClusterIdZnode.PATH, ClusterIdZnode.encode(proposed or str(Uuid.random()))
        )
    return ClusterIdZnode.decode((await store.get(ClusterIdZnode.PATH)).data)


async def generate_broker_id(store: MetadataStore, above: int) -> int:
    """An id above `reserved.broker.max.id` that no broker of the cluster has had."""
    return above + (await store.set(BROKER_SEQUENCE_ID_PATH, b"")).version


class Membership:
    """Keeps this broker registered, session after session.

    Field `_session_id`: of the session that owns the registration.
    """

    def __init__(
        self,
        store: MetadataStore,
        describe: Callable[[], BrokerIdZnode],
        broker_epoch: BrokerEpoch,
        session_timeout_ms: int,
    ) -> None:
        self._store = store
        self._describe = describe
        self._epoch = broker_epoch
        self._wait_s = session_timeout_ms / 1000
        self._session_id = 0
        self._rejoining: asyncio.Task[None] | None = None
        self.on_rejoined: Callable[[], None] = lambda: None
        """Told when the broker has registered anew, in its new epoch."""

    async def join(self) -> None:
        """Register; DUPLICATE_BROKER_REGISTRATION if another broker has this id.

        A registration that a former life of this broker has left behind is waited for, at most
        the session timeout: ZooKeeper takes it away when that session ends.
        """
        await self._register()
        self._store.session.on_state(self._on_state)
        self._on_state(self._store.session.state)  # it may have expired meanwhile

    async def leave(self) -> None:
        """Register no more; the registration itself goes with the session."""
        if self._rejoining is not None:
            self._rejoining.cancel()
            await asyncio.wait([self._rejoining])

    async def update(self) -> None:
        """Write the registration anew, because what it says has changed; the epoch stays."""
        broker = self._describe()
        await self._store.set(BrokerIdZnode.path(broker.broker_id), broker.encode())

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._maybe_rejoin()

    def _maybe_rejoin(self) -> None:
        if self._store.session.id != self._session_id and self._rejoining is None:
            self._rejoining = asyncio.get_running_loop().create_task(self._rejoin())
            self._rejoining.add_done_callback(self._rejoined)

    async def _rejoin(self) -> None:
        while self._store.session.id != self._session_id:
            try:
                await self._register()
            except (ApiError, ConnectionLoss, SessionExpired) as error:
                logger.warning("registering again is put off: %s", error)
                await asyncio.sleep(_RETRY_S)
        self.on_rejoined()

    def _rejoined(self, task: "asyncio.Task[None]") -> None:
        """Go on if the session was replaced once more before this call, or something broke."""
        self._rejoining = None
        if task.cancelled():
            return
        if error := task.exception():
            logger.error("registering again failed", exc_info=error)
            asyncio.get_running_loop().call_later(_RETRY_S, self._maybe_rejoin)
        else:
            self._maybe_rejoin()

    async def _register(self) -> None:
        broker = self._describe()
        path = BrokerIdZnode.path(broker.broker_id)
        session_id = self._store.session.id
        while not await self._create(path, broker):
            await self._wait_for_former_life(path, broker)
        self._epoch.value = (await self._store.get(path)).stat.czxid
        self._session_id = session_id
        logger.info("registered broker.id=%s epoch=%s", broker.broker_id, self._epoch.value)

    async def _create(self, path: str, broker: BrokerIdZnode) -> bool:
        """Whether the node is ours now: made, or made before without the answer reaching us."""
        try:
            await self._store.create(path, broker.encode(), ephemeral=True)
        except (NodeExists, ConnectionLoss):
            stat = await self._store.exists(path)
            return stat is not None and stat.ephemeral_owner == self._store.session.id
        return True

    async def _wait_for_former_life(self, path: str, broker: BrokerIdZnode) -> None:
        """Return when the node is gone; an ApiError if another broker lives by it."""
        gone = asyncio.Event()

        def changed(_: WatchEvent) -> None:
            gone.set()

        watch = self._store.watch_data(path, changed)
        try:
            found = BrokerIdZnode.decode(broker.broker_id, (await self._store.get(path)).data)
            # Where we listen ourselves nobody else can.
            if await _answers(_addresses(found) - _addresses(broker)):
                raise _duplicate(broker.broker_id)
            logger.info("waiting for the end of a former session path=%s", path)
            async with asyncio.timeout(2 * self._wait_s):
                await gone.wait()
        except NoNode:
            return
        except TimeoutError:
            raise _duplicate(broker.broker_id) from None
        finally:
            watch.cancel()


def _duplicate(broker_id: int) -> ApiError:
    return ApiError(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"broker.id={broker_id} is in use by another broker of this cluster: stop that "
        "one, or give this one another id",
    )


def _addresses(broker: BrokerIdZnode) -> set[tuple[str, int]]:
    return {(endpoint.host, endpoint.port) for endpoint in broker.endpoints}


async def _answers(addresses: Iterable[tuple[str, int]]) -> bool:
    """Whether somebody listens at one of them."""
    for host, port in addresses:
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                _, writer = await asyncio.open_connection(host, port)
        except OSError:
            continue
        writer.close()
        return True
    return False
