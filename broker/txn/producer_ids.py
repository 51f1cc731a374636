"""Producer ids: taken from blocks of a thousand that the cluster gives to one broker at a time.

A block is recorded as taken before its first id is used, so an id is never given twice; those that
a broker did not use before it stopped are lost, and there are 2^63 of them.
"""

import asyncio
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.model import BrokerEpoch
from broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from broker.replica.isr_changes import ControllerChannel
from broker.txn.storage import ProducerIdBlock, ProducerIdBlocks

_ALLOCATION_TIMEOUT_S: Final = 30.0


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


class ControllerProducerIdBlocks:
    """Blocks that the controller gives (KIP-730)."""

    def __init__(
        self, controller: ControllerChannel, broker_id: int, broker_epoch: BrokerEpoch
    ) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch

    async def allocate(self) -> ProducerIdBlock:
        """See ProducerIdBlocks.

        While the controller does not answer: COORDINATOR_LOAD_IN_PROGRESS, which even old clients
        try again.
        """
        request = AllocateProducerIdsRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch.value
        )
        try:
            async with asyncio.timeout(_ALLOCATION_TIMEOUT_S):
                response = await self._controller.send(request)
        except TimeoutError as error:
            raise _later("the controller does not answer") from error
        except ApiError as error:
            raise _later(str(error)) from error
        if response.error_code:
            raise _later(ErrorCode.name_of(response.error_code))
        first = response.producer_id_start
        return ProducerIdBlock(first, first + response.producer_id_len - 1)


def _later(reason: str) -> ApiError:
    return ApiError(
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no producer ids can be had now: {reason}"
    )
