"""Producer ids: taken from blocks of a thousand that the cluster gives to one broker at a time.

A block is recorded as taken before its first id is used, so an id is never given twice; those that
a broker did not use before it stopped are lost, and there are 2^63 of them.
"""

import asyncio
import logging
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import BadVersion, NodeExists, NoNode, StoreError
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.cluster import ProducerIdBlockZnode
from broker.txn.storage import ProducerIdBlock, ProducerIdBlocks

logger = logging.getLogger(__name__)

_MAX_PRODUCER_ID: Final = 2**63 - 1


class ProducerIdManager:
    """Gives away producer ids, each once.

    Fields `_next`, `_last`: what is left of the block; nothing if `_next` is the larger one.
    """

    def __init__(self, blocks: ProducerIdBlocks) -> None:
        self._blocks = blocks
        self._next = 0
        self._last = -1
        self._allocating = asyncio.Lock()

    async def generate(self) -> int:
        """A producer id that nobody has; ApiError if no block can be had."""
        async with self._allocating:  # the first one in fetches the block, the others find it
            if self._next > self._last:
                self._next, self._last = await self._blocks.allocate()
            producer_id = self._next
            self._next += 1
            return producer_id


class StoredProducerIdBlocks:
    """Blocks by the znode that remembers the last one given, whoever got it."""

    def __init__(self, store: MetadataStore, broker_id: int) -> None:
        self._store = store
        self._broker_id = broker_id

    async def allocate(self) -> ProducerIdBlock:
        """See ProducerIdBlocks. Another broker may be quicker; then the block after its one.

        While the store does not answer: COORDINATOR_LOAD_IN_PROGRESS, which even old clients
        try again.
        """
        while True:
            try:
                return await self._allocate_next()
            except (BadVersion, NodeExists, NoNode):
                continue
            except StoreError as error:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error

    async def _allocate_next(self) -> ProducerIdBlock:
        path = ProducerIdBlockZnode.PATH
        if await self._store.exists(path) is None:
            await self._store.create(path)
        data, stat = await self._store.get(path)
        latest = ProducerIdBlockZnode.decode(data) if data else None
        block = ProducerIdBlockZnode.next_block(self._broker_id, latest)
        if block.last_producer_id > _MAX_PRODUCER_ID:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been given away")
        await self._store.set(path, block.encode(), stat.version)
        logger.info("took producer ids %s to %s", block.first_producer_id, block.last_producer_id)
        return ProducerIdBlock(block.first_producer_id, block.last_producer_id)
