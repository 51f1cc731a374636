"""A broker's place in the cluster: the tree it needs, its id, its registration, controllership."""

import contextlib

from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import NodeExists, NoNode
from broker.metadata.recursive import ensure_path
from broker.metadata.store import Create, MetadataStore, SetData, parent_of
from broker.metadata.znodes.brokers import BROKER_SEQUENCE_ID_PATH, BrokerIdZnode
from broker.metadata.znodes.cluster import ClusterIdZnode
from broker.metadata.znodes.controller import ControllerEpochZnode, ControllerZnode
from broker.metadata.znodes.layout import persistent_paths
from broker.model import Uuid


async def make_persistent_paths(store: MetadataStore) -> None:
    """Create what every cluster's tree has, where it is missing."""
    for path in persistent_paths():
        await ensure_path(store, path)


async def cluster_id(store: MetadataStore, proposed: str | None) -> str:
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


async def register(store: MetadataStore, broker: BrokerIdZnode) -> int:
    """Say that the broker is alive, for as long as the session is; gives the broker epoch."""
    path = BrokerIdZnode.path(broker.broker_id)
    try:
        await store.create(path, broker.encode(), ephemeral=True)
    except NodeExists as error:
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"broker.id={broker.broker_id} is in use by another broker of this cluster: stop that "
            "one, or give this one another id",
        ) from error
    return (await store.get(path)).stat.czxid


async def become_controller(store: MetadataStore, broker_id: int, now_ms: int) -> int:
    """Take the controllership and a new epoch; gives the epoch. NodeExists if somebody has it."""
    try:
        known = await store.get(ControllerEpochZnode.PATH)
    except NoNode:
        await store.create(ControllerEpochZnode.PATH, ControllerEpochZnode.encode(0))
        known = await store.get(ControllerEpochZnode.PATH)
    epoch = ControllerEpochZnode.decode(known.data) + 1
    await store.multi(
        [
            Create(
                ControllerZnode.PATH, ControllerZnode(broker_id, now_ms).encode(), ephemeral=True
            ),
            SetData(
                ControllerEpochZnode.PATH, ControllerEpochZnode.encode(epoch), known.stat.version
            ),
        ]
    )
    return epoch
