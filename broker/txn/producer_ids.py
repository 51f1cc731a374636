"""Producer ids: taken from blocks of a thousand that the cluster gives to one broker at a time.

A block is recorded as taken before its first id is used, so an id is never given twice; those that
a broker did not use before it stopped are lost, and there are 2^63 of them.
"""

import asyncio
import json
import logging
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import BadVersion, NodeExists, NoNode, StoreError
from broker.metadata.store import MetadataStore
from broker.txn.storage import ProducerIdBlock, ProducerIdBlocks

logger = logging.getLogger(__name__)

PRODUCER_ID_BLOCK_PATH: Final = "/latest_producer_id_block"
BLOCK_SIZE: Final = 1000
_ZNODE_VERSION: Final = 1
_MAX_PRODUCER_ID: Final = 2**63 - 1


class ProducerIdManager:
    """Gives away producer ids, each once."""

    def __init__(self, blocks: ProducerIdBlocks) -> None:
        self._blocks = blocks
        self._next = 0
        self._last = -1
        self._allocating = asyncio.Lock()

    async def generate(self) -> int:
        """A producer id that nobody has; ApiError if no block can be had."""
        async with self._allocating:  # the first one in fetches the block, the others find it
            if self._next > self._last:
                block = await self._blocks.allocate()
                self._next, self._last = block.first_producer_id, block.last_producer_id
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
                block = await self._allocate_next()
            except (BadVersion, NodeExists, NoNode):
                continue
            except StoreError as error:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error
            logger.info("took producer ids block=%s", block)
            return block

    async def _allocate_next(self) -> ProducerIdBlock:
        if await self._store.exists(PRODUCER_ID_BLOCK_PATH) is None:
            block = self._block_from(0)
            await self._store.create(PRODUCER_ID_BLOCK_PATH, encode_block(block))
            return block
        data, stat = await self._store.get(PRODUCER_ID_BLOCK_PATH)
        block = self._block_from(decode_block(data).last_producer_id + 1)
        await self._store.set(PRODUCER_ID_BLOCK_PATH, encode_block(block), stat.version)
        return block

    def _block_from(self, first_producer_id: int) -> ProducerIdBlock:
        last = first_producer_id + BLOCK_SIZE - 1
        if last > _MAX_PRODUCER_ID:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been given away")
        return ProducerIdBlock(self._broker_id, first_producer_id, last)


def encode_block(block: ProducerIdBlock) -> bytes:
    """The znode's data, as Kafka writes it: the ids are strings."""
    fields = {
        "version": _ZNODE_VERSION,
        "broker": block.broker_id,
        "block_start": str(block.first_producer_id),
        "block_end": str(block.last_producer_id),
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_block(data: bytes | None) -> ProducerIdBlock:
    """The block that was given last."""
    fields = json.loads(data or b"")
    return ProducerIdBlock(fields["broker"], int(fields["block_start"]), int(fields["block_end"]))
