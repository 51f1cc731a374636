"""Leaders ask the controller for another ISR: AlterPartition, many partitions in one request.

One request is under way at a time; what is wanted meanwhile waits for the next one. A request is
tried until there is an answer: as long as there is none, the leader's proposal stands, and its high
watermark obeys both the old ISR and the new one. A decision of the controller that comes another
way (LeaderAndIsr) overtakes the proposal; the answer to it is then of no interest any more.
"""

import asyncio
import logging
from typing import Final, Protocol

from broker.errors import ErrorCode
from broker.model import BrokerEpoch, LeaderAndIsr, TopicPartition
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from broker.protocol.schema import Request, ResponseT
from broker.replica.partition import Partition

logger = logging.getLogger(__name__)

_RETRY_S: Final = 0.05
_NOT_APPLIED: Final = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
"""The controller's word that nothing was changed, and that what we know is right."""
_OUTDATED: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""What we know is old: the controller's next decision is on its way, and is waited for."""


class ControllerChannel(Protocol):
    """The way to the active controller, whoever that is."""

    async def send(self, request: Request[ResponseT]) -> ResponseT:
        """The controller's answer; tried again as long as there is no controller."""
        ...


class IsrChanges:
    """The changes that this broker's leaders want.

    Field `_wanted`: by partition, what was not answered yet. Invariant: one entry per partition.
    """

    def __init__(
        self, broker_id: int, broker_epoch: BrokerEpoch, controller: ControllerChannel
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._wanted: dict[TopicPartition, tuple[Partition, tuple[int, ...]]] = {}
        self._sending: asyncio.Task[None] | None = None

    def propose(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """Ask for an ISR; the partition is told what became of it."""
        self._wanted[partition.name] = (partition, isr)
        self._maybe_send()

    async def stop(self) -> None:
        """Ask no more."""
        self._wanted.clear()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    def _maybe_send(self) -> None:
        if self._wanted and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())
            self._sending.add_done_callback(self._sent)

    def _sent(self, task: "asyncio.Task[None]") -> None:
        """Send again if something was proposed after the last look and before this call."""
        self._sending = None
        if not task.cancelled() and (error := task.exception()):
            logger.error("asking for ISR changes failed", exc_info=error)
            asyncio.get_running_loop().call_later(_RETRY_S, self._maybe_send)
        else:
            self._maybe_send()

    async def _send_all(self) -> None:
        while self._wanted:
            self._forget_overtaken()
            asked = dict(self._wanted)
            if not asked:
                return
            response = await self._controller.send(self._request(asked))
            if response.error_code:
                name = ErrorCode.name_of(response.error_code)
                logger.warning("the controller refused ISR changes, asking again: %s", name)
                await asyncio.sleep(_RETRY_S)
            elif not self._take_up(asked, response):
                await asyncio.sleep(_RETRY_S)

    def _forget_overtaken(self) -> None:
        for name, (partition, isr) in list(self._wanted.items()):
            if partition.proposed_isr is not isr:
                del self._wanted[name]

    def _request(
        self, asked: dict[TopicPartition, tuple[Partition, tuple[int, ...]]]
    ) -> AlterPartitionRequest:
        topics: dict[str, RequestTopicData] = {}
        for name, (partition, isr) in asked.items():
            topic = topics.setdefault(
                name.topic, RequestTopicData(topic_name=name.topic, topic_id=partition.topic_id)
            )
            topic.partitions.append(
                RequestPartitionData(
                    partition_index=name.partition,
                    leader_epoch=partition.state.leader_epoch,
                    new_isr_with_epochs=[BrokerState(broker_id=member) for member in isr],
                    partition_epoch=partition.state.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch.value,
            topics=list(topics.values()),
        )

    def _take_up(
        self,
        asked: dict[TopicPartition, tuple[Partition, tuple[int, ...]]],
        response: AlterPartitionResponse,
    ) -> bool:
        """Tell every partition its answer; False if some must be asked for again."""
        names = {partition.topic_id: name.topic for name, (partition, _) in asked.items()}
        answers = {
            TopicPartition(topic.topic_name or names.get(topic.topic_id, ""), a.partition_index): a
            for topic in response.topics
            for a in topic.partitions
        }
        outcomes = [
            self._settle(name, partition, isr, answers.get(name))
            for name, (partition, isr) in asked.items()
        ]
        return all(outcomes)

    def _settle(
        self,
        name: TopicPartition,
        partition: Partition,
        isr: tuple[int, ...],
        answer: ResponsePartitionData | None,
    ) -> bool:
        """Whether the matter is done with."""
        is_overtaken = partition.proposed_isr is not isr
        if not is_overtaken and (answer is None or not _is_final(answer.error_code)):
            code = "no answer" if answer is None else ErrorCode.name_of(answer.error_code)
            logger.warning("ISR change to %s failed partition=%s: %s", isr, name, code)
            return False
        if self._wanted.get(name) == (partition, isr):
            del self._wanted[name]
        if answer is None or is_overtaken:
            return True
        if answer.error_code == ErrorCode.NONE:
            partition.isr_accepted(_decided(answer, partition))
        elif answer.error_code in _NOT_APPLIED:
            partition.isr_refused()
        return True


def _is_final(error_code: int) -> bool:
    return error_code == ErrorCode.NONE or error_code in _NOT_APPLIED or error_code in _OUTDATED


def _decided(answer: ResponsePartitionData, partition: Partition) -> LeaderAndIsr:
    return LeaderAndIsr(
        answer.leader_id,
        answer.leader_epoch,
        tuple(answer.isr),
        partition.state.replicas,
        answer.partition_epoch,
    )
