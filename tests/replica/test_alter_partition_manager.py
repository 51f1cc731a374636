"""ISR proposals: every one is sent to the controller, whenever it is submitted."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from broker.errors import ApiError, ErrorCode
from broker.model import BrokerEpoch, LeaderAndIsr, TopicPartition, Uuid
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from broker.replica.alter_partition_manager import AlterPartitionManager
from broker.replica.partition import Partition

ISR = (1, 2)


@dataclass
class Leader:
    """The part of a partition that the manager uses."""

    name: TopicPartition
    on_accepted: Callable[[], None] = lambda: None
    topic_id: Uuid = field(default_factory=Uuid.random)
    state: LeaderAndIsr = field(default_factory=lambda: LeaderAndIsr(1, 0, (1,), (1, 2), 0))
    proposed_isr: tuple[int, ...] | None = ISR
    accepted: asyncio.Event = field(default_factory=asyncio.Event)

    def isr_accepted(self, answer: LeaderAndIsr) -> None:
        """As `Partition.isr_accepted`."""
        self.proposed_isr = None
        self.accepted.set()
        self.on_accepted()


class Controller:
    """Accepts every ISR, after the given number of failures."""

    def __init__(self, failures: int = 0) -> None:
        self.asked: list[TopicPartition] = []
        self._failures = failures

    async def send(self, request: Any) -> Any:
        """A ControllerSender."""
        assert isinstance(request, AlterPartitionRequest)
        await asyncio.sleep(0)
        if self._failures:
            self._failures -= 1
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        for topic in request.topics:
            self.asked += [
                TopicPartition(topic.topic_name, p.partition_index) for p in topic.partitions
            ]
        return AlterPartitionResponse(
            topics=[
                ResponseTopicData(
                    topic_name=topic.topic_name,
                    partitions=[
                        ResponsePartitionData(
                            partition_index=asked.partition_index,
                            leader_id=1,
                            isr=list(ISR),
                            partition_epoch=1,
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def test_regression_proposal_submitted_right_after_the_last_response_is_sent() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        manager = AlterPartitionManager(1, BrokerEpoch(5), controller := Controller())
        second = Leader(TopicPartition("t", 1))

        def submit_second() -> None:
            """Runs after the task has ended and before its done callback has run."""
            loop.call_soon(manager.submit, cast(Partition, second), ISR)

        first = Leader(TopicPartition("t", 0), submit_second)
        manager.submit(cast(Partition, first), ISR)
        await asyncio.wait_for(second.accepted.wait(), 5)
        assert controller.asked == [first.name, second.name]

    asyncio.run(scenario())


def test_regression_equal_proposal_of_a_new_epoch_is_sent_while_the_old_one_is_in_flight() -> None:
    """Found by seeds 5018 and 5072 of the simulation: the ISR stayed at one replica for ever."""

    async def scenario() -> None:
        manager = AlterPartitionManager(1, BrokerEpoch(5), controller := Controller())
        leader = Leader(TopicPartition("t", 0))
        manager.submit(cast(Partition, leader), ISR)
        await asyncio.sleep(0)  # the request is in flight: a new leader epoch begins meanwhile
        equal = tuple(sorted(ISR))
        leader.proposed_isr = equal
        manager.submit(cast(Partition, leader), equal)
        await asyncio.wait_for(leader.accepted.wait(), 5)
        assert controller.asked == [leader.name, leader.name]

    asyncio.run(scenario())


def test_proposal_is_sent_again_after_a_failed_request() -> None:
    async def scenario() -> None:
        manager = AlterPartitionManager(1, BrokerEpoch(5), Controller(failures=2))
        leader = Leader(TopicPartition("t", 0))
        manager.submit(cast(Partition, leader), ISR)
        await asyncio.wait_for(leader.accepted.wait(), 5)

    asyncio.run(scenario())


def test_nothing_is_sent_after_stop() -> None:
    async def scenario() -> list[TopicPartition]:
        manager = AlterPartitionManager(1, BrokerEpoch(5), controller := Controller())
        manager.submit(cast(Partition, Leader(TopicPartition("t", 0))), ISR)
        await manager.stop()
        await asyncio.sleep(0.1)
        return controller.asked

    assert asyncio.run(scenario()) == []
