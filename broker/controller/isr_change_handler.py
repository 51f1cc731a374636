"""Changes of ISRs: by AlterPartition, and by notifications of brokers that do not support it.

Since KIP-497 leaders request a new ISR with AlterPartition. Brokers with an older inter-broker
protocol write the partition's state themselves and leave a notification in the store, from which
the controller reads which states have changed.
"""

import logging
from collections.abc import Iterable

from broker.controller.alter_partition import answer, check_broker, decide
from broker.controller.controller_services import ControllerServices
from broker.controller.leadership import Leadership
from broker.controller.reassignment_manager import ReassignmentManager
from broker.errors import ErrorCode
from broker.metadata.store import join
from broker.metadata.znodes.notifications import IsrChangeZnode
from broker.model import TopicPartition
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)

logger = logging.getLogger(__name__)

Wanted = dict[TopicPartition, RequestPartitionData]
Outcomes = dict[TopicPartition, Leadership | ErrorCode]


class IsrChangeHandler:
    """Processes changes of ISRs, in one controller epoch.

    A leader waits for the response before it proposes another ISR of the same partition, and
    retries without one. So each request is answered, and a repeated one gets the result of the
    first (see `decide`).
    """

    def __init__(self, services: ControllerServices, reassigner: ReassignmentManager) -> None:
        self._services = services
        self._context = services.context
        self._reassigner = reassigner

    async def process_alter_partition(
        self, request: AlterPartitionRequest
    ) -> AlterPartitionResponse:
        """Write those of the ISRs that a leader requests which are valid.

        Reassignments whose last replica came in sync are completed by a later event, so that the
        leader gets its response first.
        """
        epochs = {id_: broker.broker_epoch for id_, broker in self._context.brokers.items()}
        if error := check_broker(request, epochs):
            return AlterPartitionResponse(error_code=error)
        wanted: Wanted = {}
        for topic in request.topics:
            name = self._name(topic)
            if name is not None:
                for partition in topic.partitions:
                    wanted[TopicPartition(name, partition.partition_index)] = partition
        outcomes = await self._change(request.broker_id, wanted)
        # To all brokers, also for what was rejected: the leader may have missed the current state.
        self._services.send_metadata(wanted)
        moved = [name for name, outcome in outcomes.items() if isinstance(outcome, Leadership)]
        if not self._context.reassigning.isdisjoint(moved):
            self._services.later(
                f"reassigned {moved}", lambda: self._reassigner.maybe_complete(moved)
            )
        return AlterPartitionResponse(
            topics=[self._respond(topic, outcomes) for topic in request.topics]
        )

    def _name(self, topic: RequestTopicData) -> str | None:
        """The topic's name; from version 2 on the request contains its id."""
        return topic.topic_name or self._context.topic_names.get(topic.topic_id)

    async def _change(self, leader: int, wanted: Wanted) -> Outcomes:
        # Without brokers that are shutting down: a leader that does not know of it yet would add
        # them to the ISR again just before they stop.
        live = {id_: self._context.brokers[id_].broker_epoch for id_ in self._live()}
        outcomes: Outcomes = {}
        updates: dict[TopicPartition, Leadership] = {}
        for name, partition in wanted.items():
            current = self._context.leaderships.get(name)
            if current is None:
                outcomes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            decided = decide(leader, partition, current, live)
            if isinstance(decided, Leadership) and decided is not current:
                updates[name] = decided
            else:
                outcomes[name] = decided
        # Conditional writes. One fails if another controller or a broker that writes states itself
        # has changed the partition: then the stored state is read again, and the leader retries.
        written = await self._services.store.update_leaderships(updates)
        self._context.leaderships |= written
        outcomes |= written
        outdated = [name for name in updates if name not in written]
        await self._services.refresh(outdated)
        return outcomes | dict.fromkeys(outdated, ErrorCode.INVALID_UPDATE_VERSION)

    def _live(self) -> set[int]:
        return self._context.live_broker_ids

    def _respond(self, topic: RequestTopicData, outcomes: Outcomes) -> ResponseTopicData:
        name = self._name(topic)
        return ResponseTopicData(
            topic_name=topic.topic_name,
            topic_id=topic.topic_id,
            partitions=[
                self._answer(partition.partition_index, name, outcomes, bool(topic.topic_name))
                for partition in topic.partitions
            ],
        )

    def _answer(
        self, index: int, name: str | None, outcomes: Outcomes, is_old: bool
    ) -> ResponsePartitionData:
        if name is None:
            return answer(index, ErrorCode.UNKNOWN_TOPIC_ID)
        outcome = outcomes[TopicPartition(name, index)]
        if outcome is ErrorCode.INELIGIBLE_REPLICA and is_old:
            outcome = ErrorCode.OPERATION_NOT_ATTEMPTED  # before version 2 there was no other
        return answer(index, outcome)

    async def process_isr_change_notification(self) -> None:
        """Read the states that brokers have written themselves, and send them to all brokers.

        The notifications are deleted last, so none is lost if this fails. The next controller
        deletes those that it finds, because it reads the states of all partitions anyway.
        """
        store = self._services.store
        parent = IsrChangeZnode.PARENT
        paths = {name: join(parent, name) for name in await store.children(parent)}
        notes = await store.get_all(paths)
        changed = {name for note in notes.values() for name in IsrChangeZnode.decode(note.data)}
        if changed:
            known = await self._known(changed)
            self._services.send_metadata(known)
            await self._reassigner.maybe_complete(known)
        await store.delete(paths.values())

    async def _known(self, names: Iterable[TopicPartition]) -> list[TopicPartition]:
        return await self._services.refresh(
            name
            for name in names
            if self._context.assignment(name).replicas  # topics may have been deleted since
        )
