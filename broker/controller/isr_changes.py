"""ISRs change: by AlterPartition, and by the notes of brokers that know no such request."""

import logging
from collections.abc import Iterable

from broker.controller.alter_partition import answer, check_broker, decide
from broker.controller.leadership import Leadership
from broker.controller.reassigning import Reassigner
from broker.controller.term import Term
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


class IsrChanges:
    """The ISR changes of one controller term."""

    def __init__(self, term: Term, reassigner: Reassigner) -> None:
        self._term = term
        self._context = term.context
        self._reassigner = reassigner

    async def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Give leaders the ISRs they ask for, where they may have them.

        Reassignments that this completes are completed afterwards, by an event of their own.
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
        self._term.send_metadata(wanted)
        moved = [name for name, outcome in outcomes.items() if isinstance(outcome, Leadership)]
        if not self._context.reassigning.isdisjoint(moved):
            self._term.later(f"reassigned {moved}", lambda: self._reassigner.maybe_complete(moved))
        return AlterPartitionResponse(
            topics=[self._respond(topic, outcomes) for topic in request.topics]
        )

    def _name(self, topic: RequestTopicData) -> str | None:
        """From version 2 on topics go by id."""
        return topic.topic_name or self._context.topic_names.get(topic.topic_id)

    async def _change(self, leader: int, wanted: Wanted) -> Outcomes:
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
        written = await self._term.store.update_leaderships(updates)
        self._context.leaderships |= written
        outcomes |= written
        outdated = [name for name in updates if name not in written]
        await self._term.refresh(outdated)
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
            outcome = ErrorCode.OPERATION_NOT_ATTEMPTED  # what leaders knew before version 2
        return answer(index, outcome)

    async def noted(self) -> None:
        """Read the notes of brokers that have changed ISRs in the store themselves."""
        store = self._term.store
        parent = IsrChangeZnode.PARENT
        paths = {name: join(parent, name) for name in await store.children(parent)}
        notes = await store.get_all(paths)
        changed = {name for note in notes.values() for name in IsrChangeZnode.decode(note.data)}
        if changed:
            known = await self._known(changed)
            self._term.send_metadata(known)
            await self._reassigner.maybe_complete(known)
        await store.delete(paths.values())

    async def _known(self, names: Iterable[TopicPartition]) -> list[TopicPartition]:
        return await self._term.refresh(
            name for name in names if self._context.assignment(name).replicas
        )
