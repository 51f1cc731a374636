"""Gives brokers blocks of producer ids (AllocateProducerIds, KIP-730)."""

import logging
from typing import Final

from broker.controller.term import Term
from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import BadVersion, NoNode
from broker.metadata.store import Create, SetData
from broker.metadata.znodes.cluster import ProducerIdBlockZnode

logger = logging.getLogger(__name__)

_MAX_PRODUCER_ID: Final = 2**63 - 1


async def allocate_block(term: Term, broker_id: int, broker_epoch: int) -> ProducerIdBlockZnode:
    """The next block, which is nobody else's; ApiError if who asks is not alive in that epoch."""
    live = term.context.brokers.get(broker_id)
    if live is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if live.broker_epoch != broker_epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
    while True:
        try:
            return await _allocate_next(term, broker_id)
        except BadVersion:  # a broker that takes its blocks itself was quicker
            continue


async def _allocate_next(term: Term, broker_id: int) -> ProducerIdBlockZnode:
    path = ProducerIdBlockZnode.PATH
    try:
        data, stat = await term.store.store.get(path)
    except NoNode:
        await term.store.write([Create(path)])
        return await _allocate_next(term, broker_id)
    latest = ProducerIdBlockZnode.decode(data) if data else None
    block = ProducerIdBlockZnode.next_block(broker_id, latest)
    if block.last_producer_id > _MAX_PRODUCER_ID:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been given away")
    await term.store.write([SetData(path, block.encode(), stat.version)])
    logger.info(
        "gave producer ids %s to %s broker=%s",
        block.first_producer_id,
        block.last_producer_id,
        broker_id,
    )
    return block
