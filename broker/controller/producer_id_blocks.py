"""Allocates blocks of producer ids to brokers (AllocateProducerIds, KIP-730).

/latest_producer_id_block holds the last allocated block; the next one begins after it. The
write is guarded by the node's version, so that no id is in two blocks.
"""

import logging
from typing import Final

from broker.controller.controller_services import ControllerServices
from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import BadVersion, NoNode
from broker.metadata.store import Create, SetData
from broker.metadata.znodes.cluster import ProducerIdBlockZnode

logger = logging.getLogger(__name__)

_MAX_PRODUCER_ID: Final = 2**63 - 1


async def allocate_block(
    services: ControllerServices, broker_id: int, broker_epoch: int
) -> ProducerIdBlockZnode:
    """Allocate the next block; ApiError if the broker is not registered with that epoch."""
    live = services.context.brokers.get(broker_id)
    if live is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if live.broker_epoch != broker_epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
    while True:
        try:
            return await _allocate_next(services, broker_id)
        except BadVersion:  # an older broker, which writes the node itself, was faster
            continue


async def _allocate_next(services: ControllerServices, broker_id: int) -> ProducerIdBlockZnode:
    path = ProducerIdBlockZnode.PATH
    try:
        data, stat = await services.store.store.get(path)
    except NoNode:
        await services.store.write([Create(path)])
        return await _allocate_next(services, broker_id)
    latest = ProducerIdBlockZnode.decode(data) if data else None
    block = ProducerIdBlockZnode.next_block(broker_id, latest)
    if block.last_producer_id > _MAX_PRODUCER_ID:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the producer ids are exhausted")
    await services.store.write([SetData(path, block.encode(), stat.version)])
    logger.info(
        "Allocated producer ids first=%s last=%s broker=%s",
        block.first_producer_id,
        block.last_producer_id,
        broker_id,
    )
    return block
