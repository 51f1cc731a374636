"""Sends the ISRs that leaders propose to the controller: AlterPartition, KIP-497.

One request is in flight at a time, with all partitions that have a proposal then; later proposals
wait for the next request. A request is retried until there is a response. Until then
the proposal stands and the leader's high watermark respects both the old and the new ISR. A
decision of the controller that arrives another way (LeaderAndIsr) supersedes the proposal, and the
response to it is ignored.
"""

import asyncio
import logging
from typing import Final, NamedTuple, Protocol

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
"""The controller has changed nothing, and the committed ISR that the leader knows is current."""
_OUTDATED: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""The leader's state is old: a newer decision of the controller is on its way."""


class _Proposal(NamedTuple):
    """An ISR that a partition's leader proposes."""

    partition: Partition
    isr: tuple[int, ...]

    @property
    def is_superseded(self) -> bool:
        """Whether the proposal is superseded by a decision or by another proposal."""
        return self.partition.proposed_isr is not self.isr


class ControllerSender(Protocol):
    """Sends requests to the active controller, whichever broker that is."""

    async def send(self, request: Request[ResponseT]) -> ResponseT:
        """The controller's response; retries as long as there is no controller."""
        ...


class AlterPartitionManager:
    """The ISR proposals of this broker's leaders.

    Field `_unsent`: proposals without a response, by partition; also those in flight.
    Invariant: at most one per partition.
    Field `_sending`: the task that sends them. Invariant: runs while `_unsent` is not empty, except
    in the time before a retry.
    """

    def __init__(
        self, broker_id: int, broker_epoch: BrokerEpoch, controller: ControllerSender
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._unsent: dict[TopicPartition, _Proposal] = {}
        self._sending: asyncio.Task[None] | None = None

    def submit(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """Propose an ISR; `isr_accepted` or `isr_refused` of the partition is the result."""
        self._unsent[partition.name] = _Proposal(partition, isr)
        self._maybe_send()

    async def stop(self) -> None:
        """Stop sending requests."""
        self._unsent.clear()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    def _maybe_send(self) -> None:
        if self._unsent and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())
            self._sending.add_done_callback(self._sent)

    def _sent(self, task: "asyncio.Task[None]") -> None:
        """Send what was submitted after the task ended and before this callback."""
        self._sending = None
        if not task.cancelled() and (error := task.exception()):
            logger.error("AlterPartition failed, retrying", exc_info=error)
            asyncio.get_running_loop().call_later(_RETRY_S, self._maybe_send)
        else:
            self._maybe_send()

    async def _send_all(self) -> None:
        while self._unsent:
            self._remove_superseded()
            in_flight = dict(self._unsent)
            if not in_flight:
                return
            response = await self._controller.send(self._request(in_flight))
            if response.error_code:
                code = ErrorCode.name_of(response.error_code)
                logger.warning("AlterPartition was refused, retrying error=%s", code)
                await asyncio.sleep(_RETRY_S)
            elif not self._apply(in_flight, response):
                await asyncio.sleep(_RETRY_S)

    def _remove_superseded(self) -> None:
        for name, proposal in list(self._unsent.items()):
            if proposal.is_superseded:
                del self._unsent[name]

    def _request(self, in_flight: dict[TopicPartition, _Proposal]) -> AlterPartitionRequest:
        topics: dict[str, RequestTopicData] = {}
        for name, (partition, isr) in in_flight.items():
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

    def _apply(
        self, in_flight: dict[TopicPartition, _Proposal], response: AlterPartitionResponse
    ) -> bool:
        """Apply the result of every partition; False if some have to be retried."""
        names = {proposal.partition.topic_id: name.topic for name, proposal in in_flight.items()}
        answers = {
            TopicPartition(topic.topic_name or names.get(topic.topic_id, ""), a.partition_index): a
            for topic in response.topics
            for a in topic.partitions
        }
        outcomes = [
            self._apply_one(name, proposal, answers.get(name))
            for name, proposal in in_flight.items()
        ]
        return all(outcomes)

    def _apply_one(
        self, name: TopicPartition, proposal: _Proposal, answer: ResponsePartitionData | None
    ) -> bool:
        """Whether the proposal has its final result."""
        is_superseded = proposal.is_superseded
        if not is_superseded and (answer is None or not _is_final(answer.error_code)):
            code = "no answer" if answer is None else ErrorCode.name_of(answer.error_code)
            logger.warning(
                "ISR change failed, retrying partition=%s isr=%s error=%s", name, proposal.isr, code
            )
            return False
        # The same object, not an equal one: while a shrink to (2, 3) is in flight, a new epoch may
        # begin with (2), and its proposal to grow to (2, 3) must still be sent.
        if self._unsent.get(name) is proposal:
            del self._unsent[name]
        if answer is None or is_superseded:
            return True
        partition = proposal.partition
        if answer.error_code == ErrorCode.NONE:
            partition.isr_accepted(_committed(answer, partition))
        elif answer.error_code in _NOT_APPLIED:
            partition.isr_refused()
        else:
            logger.info(
                "ISR change is outdated, waiting for LeaderAndIsr partition=%s isr=%s error=%s",
                name,
                proposal.isr,
                ErrorCode.name_of(answer.error_code),
            )
        return True


def _is_final(error_code: int) -> bool:
    return error_code == ErrorCode.NONE or error_code in _NOT_APPLIED or error_code in _OUTDATED


def _committed(answer: ResponsePartitionData, partition: Partition) -> LeaderAndIsr:
    return LeaderAndIsr(
        answer.leader_id,
        answer.leader_epoch,
        tuple(answer.isr),
        partition.state.replicas,
        answer.partition_epoch,
    )
