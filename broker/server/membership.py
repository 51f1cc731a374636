"""A broker in the metadata store: persistent paths, cluster id, broker id, registration.

The registration is an ephemeral znode, so it lasts as long as the session. When the session
expires, the controller considers the broker dead. The broker registers again with its next session
and has a new broker epoch from then on (KIP-380): requests with the old epoch are rejected, and the
controller notices that the broker was gone.
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
    """Create the persistent paths that every cluster has, if they are missing."""
    await asyncio.gather(*(ensure_path(store, path) for path in persistent_paths()))


async def registered_cluster_id(store: MetadataStore) -> str | None:
    """The cluster id; None if no broker has been started in the cluster yet."""
    try:
        return ClusterIdZnode.decode((await store.get(ClusterIdZnode.PATH)).data)
    except NoNode:
        return None


async def make_cluster_id(store: MetadataStore, proposed: str | None) -> str:
    """The cluster id; a new cluster gets the `proposed` one, or a random one."""
    await ensure_path(store, parent_of(ClusterIdZnode.PATH))
    with contextlib.suppress(NodeExists):
        await store.create(
            ClusterIdZnode.PATH, ClusterIdZnode.encode(proposed or str(Uuid.random()))
        )
    return ClusterIdZnode.decode((await store.get(ClusterIdZnode.PATH)).data)


async def generate_broker_id(store: MetadataStore, above: int) -> int:
    """A new broker id above `reserved.broker.max.id`, from the sequence in the store."""
    return above + (await store.set(BROKER_SEQUENCE_ID_PATH, b"")).version


class Membership:
    """Keeps this broker registered, session after session."""

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
        """The session that owns the registration."""
        self._rejoining: asyncio.Task[None] | None = None
        """Registers again after the session has expired. Invariant: at most one at a time."""
        self.on_rejoined: Callable[[], None] = lambda: None
        """Called when the broker has registered again, with its new epoch."""

    async def join(self) -> None:
        """Register; DUPLICATE_BROKER_REGISTRATION if another broker has this id.

        If the registration of this broker's previous session still exists, wait until it is gone:
        ZooKeeper deletes it when that session expires.
        """
        await self._register()
        self._store.session.on_state(self._on_state)
        self._on_state(self._store.session.state)  # the session may have expired meanwhile

    async def leave(self) -> None:
        """Do not register again; the registration itself ends with the session."""
        if self._rejoining is not None:
            self._rejoining.cancel()
            await asyncio.wait([self._rejoining])

    async def update(self) -> None:
        """Write the changed registration; the broker epoch stays the same."""
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
                logger.warning("cannot register again yet, retrying: %s", error)
                await asyncio.sleep(_RETRY_S)
        self.on_rejoined()

    def _rejoined(self, task: "asyncio.Task[None]") -> None:
        """Register again if the session was replaced once more meanwhile, or if this failed."""
        self._rejoining = None
        if task.cancelled():
            return
        if error := task.exception():
            logger.error("cannot register again", exc_info=error)
            asyncio.get_running_loop().call_later(_RETRY_S, self._maybe_rejoin)
        else:
            self._maybe_rejoin()

    async def _register(self) -> None:
        broker = self._describe()
        path = BrokerIdZnode.path(broker.broker_id)
        session_id = self._store.session.id
        while not await self._create(path, broker):
            await self._wait_for_previous_session(path, broker)
        self._epoch.value = (await self._store.get(path)).stat.czxid
        self._session_id = session_id
        logger.info("registered broker.id=%s epoch=%s", broker.broker_id, self._epoch.value)

    async def _create(self, path: str, broker: BrokerIdZnode) -> bool:
        """Create the znode; returns whether it is ours, also if the response was lost."""
        try:
            await self._store.create(path, broker.encode(), ephemeral=True)
        except (NodeExists, ConnectionLoss):
            stat = await self._store.exists(path)
            return stat is not None and stat.ephemeral_owner == self._store.session.id
        return True

    async def _wait_for_previous_session(self, path: str, broker: BrokerIdZnode) -> None:
        """Return when the znode is gone; ApiError if it belongs to another broker that is alive."""
        gone = asyncio.Event()

        def changed(_: WatchEvent) -> None:
            gone.set()

        watch = self._store.watch_data(path, changed)
        try:
            found = BrokerIdZnode.decode(broker.broker_id, (await self._store.get(path)).data)
            # Our own addresses prove nothing: we listen there ourselves.
            if await _is_any_listening(_addresses(found) - _addresses(broker)):
                raise _duplicate(broker.broker_id)
            logger.info("waiting until the previous session expires path=%s", path)
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
        f"broker.id={broker_id} is in use by another broker of this cluster: stop that broker, or "
        "set another broker.id",
    )


def _addresses(broker: BrokerIdZnode) -> set[tuple[str, int]]:
    return {(endpoint.host, endpoint.port) for endpoint in broker.endpoints}


async def _is_any_listening(addresses: Iterable[tuple[str, int]]) -> bool:
    """Whether one of the addresses accepts connections."""
    for host, port in addresses:
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                _, writer = await asyncio.open_connection(host, port)
        except OSError:
            continue
        writer.close()
        return True
    return False
