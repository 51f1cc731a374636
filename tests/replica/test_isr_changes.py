"""Proposals of an ISR: whenever one comes, the controller is asked."""

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
from broker.replica.isr_changes import IsrChanges
from broker.replica.partition import Partition

ISR = (1, 2)


@dataclass
class Leader:
    """As much of a partition as a proposal needs."""

    name: TopicPartition
    on_accepted: Callable[[], None] = lambda: None
    topic_id: Uuid = field(default_factory=Uuid.random)
    state: LeaderAndIsr = field(default_factory=lambda: LeaderAndIsr(1, 0, (1,), (1, 2), 0))
    proposed_isr: tuple[int, ...] | None = ISR
    accepted: asyncio.Event = field(default_factory=asyncio.Event)

    def isr_accepted(self, answer: LeaderAndIsr) -> None:
        """What a partition hears."""
        self.proposed_isr = None
        self.accepted.set()
        self.on_accepted()


class Controller:
    """Says yes, after it has failed as often as it shall."""

    def __init__(self, failures: int = 0) -> None:
        self.asked: list[TopicPartition] = []
        self._failures = failures

    async def send(self, request: Any) -> Any:
        """A ControllerChannel."""
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


def test_regression_proposal_right_after_the_last_answer_is_not_left_lying() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        changes = IsrChanges(1, BrokerEpoch(5), controller := Controller())
        second = Leader(TopicPartition("t", 1))
        # It comes when the first request is done with, and before the loop has told so.
        first = Leader(
            TopicPartition("t", 0),
            lambda: loop.call_soon(changes.propose, cast(Partition, second), ISR) and None,
        )
        changes.propose(cast(Partition, first), ISR)
        await asyncio.wait_for(second.accepted.wait(), 5)
        assert controller.asked == [first.name, second.name]

    asyncio.run(scenario())


def test_proposal_outlives_a_request_that_breaks() -> None:
    async def scenario() -> None:
        changes = IsrChanges(1, BrokerEpoch(5), Controller(failures=2))
        leader = Leader(TopicPartition("t", 0))
        changes.propose(cast(Partition, leader), ISR)
        await asyncio.wait_for(leader.accepted.wait(), 5)

    asyncio.run(scenario())


def test_nothing_is_asked_after_the_stop() -> None:
    async def scenario() -> list[TopicPartition]:
        changes = IsrChanges(1, BrokerEpoch(5), controller := Controller())
        changes.propose(cast(Partition, Leader(TopicPartition("t", 0))), ISR)
        await changes.stop()
        await asyncio.sleep(0.1)
        return controller.asked

    assert asyncio.run(scenario()) == []
