"""Producer ids, taken from blocks of 1000 that the controller allocates to a broker.

A block is recorded as allocated before its first id is used, so an id is never used twice. Ids that
a broker has not used when it stops are lost; there are 2^63.
"""

import asyncio
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.model import BrokerEpoch
from broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from broker.replica.alter_partition_manager import ControllerSender
from broker.txn.storage import ProducerIdBlock, ProducerIdBlocks

_ALLOCATION_TIMEOUT_S: Final = 30.0


class ProducerIdManager:
    """Generates producer ids, each once.

    Fields `_next`, `_last`: the unused ids of the block; none if `_next` > `_last`.
    """

    def __init__(self, blocks: ProducerIdBlocks) -> None:
        self._blocks = blocks
        self._next = 0
        self._last = -1
        self._allocating = asyncio.Lock()

    async def generate(self) -> int:
        """A producer id that was never used; ApiError if no block can be allocated."""
        async with self._allocating:  # concurrent callers allocate one block
            if self._next > self._last:
                self._next, self._last = await self._blocks.allocate()
            producer_id = self._next
            self._next += 1
            return producer_id


class ControllerProducerIdBlocks:
    """Blocks allocated by the controller (KIP-730)."""

    def __init__(
        self, controller: ControllerSender, broker_id: int, broker_epoch: BrokerEpoch
    ) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch

    async def allocate(self) -> ProducerIdBlock:
        """See ProducerIdBlocks.

        COORDINATOR_LOAD_IN_PROGRESS while the controller does not answer: all clients retry it.
        """
        request = AllocateProducerIdsRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch.value
        )
        try:
            async with asyncio.timeout(_ALLOCATION_TIMEOUT_S):
                response = await self._controller.send(request)
        except TimeoutError as error:
            raise _unavailable("the controller does not answer") from error
        except ApiError as error:
            raise _unavailable(str(error)) from error
        if response.error_code:
            raise _unavailable(ErrorCode.name_of(response.error_code))
        first = response.producer_id_start
        return ProducerIdBlock(first, first + response.producer_id_len - 1)


def _unavailable(reason: str) -> ApiError:
    return ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no producer ids available: {reason}")
