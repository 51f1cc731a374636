"""Producer ids are unique, and come from blocks allocated by the controller."""

import asyncio
from typing import Any

import pytest

from broker.errors import ApiError, ErrorCode
from broker.model import BrokerEpoch
from broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from broker.txn.producer_ids import ControllerProducerIdBlocks, ProducerIdManager
from tests.txn.support import MemoryBlocks


class Controller:
    """A controller with prepared responses; exceptions are raised."""

    def __init__(self, answer: AllocateProducerIdsResponse | Exception) -> None:
        self.answer = answer
        self.asked: list[AllocateProducerIdsRequest] = []

    async def send(self, request: Any) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_concurrent_ids_are_unique() -> None:
    blocks = MemoryBlocks()
    manager = ProducerIdManager(blocks)
    ids = await asyncio.gather(*(manager.generate() for _ in range(25)))
    assert sorted(ids) == list(range(25))
    assert blocks.allocated == 3


async def test_block_is_requested_with_the_current_broker_epoch() -> None:
    controller = Controller(
        AllocateProducerIdsResponse(producer_id_start=2000, producer_id_len=1000)
    )
    epoch = BrokerEpoch(41)
    blocks = ControllerProducerIdBlocks(controller, 7, epoch)
    epoch.value = 42
    assert await blocks.allocate() == (2000, 2999)
    assert controller.asked == [AllocateProducerIdsRequest(broker_id=7, broker_epoch=42)]


@pytest.mark.parametrize(
    "answer",
    [
        AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED),
        TimeoutError(),
    ],
)
async def test_error_or_timeout_of_the_controller_is_retriable(
    answer: AllocateProducerIdsResponse | Exception,
) -> None:
    with pytest.raises(ApiError) as caught:
        await ControllerProducerIdBlocks(Controller(answer), 7, BrokerEpoch(1)).allocate()
    assert caught.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
