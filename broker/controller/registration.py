"""Taking the controllership."""

from broker.metadata.errors import NoNode
from broker.metadata.store import Create, MetadataStore, SetData
from broker.metadata.znodes.controller import ControllerEpochZnode, ControllerZnode


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
