"""Takes partitions from state to state: makes them, elects their leaders, takes them offline.

Kafka's PartitionStateMachine. Elections use what the controller remembers, as nobody else changes a
partition's state any more (KIP-497); where the store turns out to have another version, it is read
and the election held again. Each change is written first, then the brokers are told.
"""

import logging
from collections.abc import Iterable

from broker.controller.election import Candidates, Elected, ElectionStrategy, elect
from broker.controller.leadership import Leadership
from broker.controller.request_batch import RequestBatch
from broker.controller.states import PARTITION_CAME_FROM, PartitionState
from broker.controller.term import Term
from broker.model import TopicPartition

logger = logging.getLogger("state.change")


class PartitionStateMachine:
    """The partitions of one controller term."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._context = term.context

    def initialize(self) -> None:
        """Find out in what state every partition is."""
        for partition in self._context.partitions():
            known = self._context.leaderships.get(partition)
            if known is None:
                state = PartitionState.NEW
            elif self._context.is_online(known.leader, partition):
                state = PartitionState.ONLINE
            else:
                state = PartitionState.OFFLINE
            self._context.partition_states[partition] = state

    async def elect_missing(self, topic: str | None = None) -> dict[TopicPartition, bool]:
        """Elect leaders for new and offline partitions, of one topic if it is given."""
        waiting = self._context.partitions_in(PartitionState.NEW, PartitionState.OFFLINE)
        wanted = [name for name in waiting if topic is None or name.topic == topic]
        return await self.bring_online(wanted, ElectionStrategy.OFFLINE)

    def create(self, partitions: Iterable[TopicPartition]) -> None:
        """Know new partitions, which have replicas and no leader yet."""
        self._move(partitions, PartitionState.NEW)

    def take_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Say that partitions have lost their leader."""
        self._move(partitions, PartitionState.OFFLINE)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget about partitions, which were offline."""
        self._move(partitions, PartitionState.NON_EXISTENT)

    async def bring_online(
        self,
        partitions: Iterable[TopicPartition],
        strategy: ElectionStrategy,
        first_of: Iterable[str] = (),
    ) -> dict[TopicPartition, bool]:
        """Let partitions have a leader: new ones their first, others by the election `strategy`.

        Gives whether each has been elected one; new ones whose replicas are all dead have not.
        """
        valid = self._valid(partitions, PartitionState.ONLINE)
        states = self._context.partition_states
        new = [name for name in valid if states[name] is PartitionState.NEW]
        others = [name for name in valid if states[name] is not PartitionState.NEW]
        batch = self._term.batch()
        led = await self._initialize(new, batch, first_of)
        led |= await self._elect(others, strategy, batch)
        for name in led:
            self._set(name, PartitionState.ONLINE)
        batch.send()
        return {name: name in led for name in valid}

    async def _initialize(
        self, new: list[TopicPartition], batch: RequestBatch, first_of: Iterable[str]
    ) -> set[TopicPartition]:
        first = {}
        for name in new:
            replicas = self._context.assignment(name).replicas
            online = [replica for replica in replicas if self._context.is_online(replica, name)]
            if online:
                first[name] = Leadership.first(online)
            else:
                logger.error("no replica is alive partition=%s replicas=%s", name, replicas)
                batch.add_update_metadata(self._context.brokers, [name])
        if not first:
            return set()
        created = await self._term.store.create_leaderships(first, list(first_of))
        self._context.leaderships |= created
        for name, state in created.items():
            batch.add_leader_and_isr(state.isr, name, is_new=True)
        return set(created)

    async def _elect(
        self, partitions: list[TopicPartition], strategy: ElectionStrategy, batch: RequestBatch
    ) -> set[TopicPartition]:
        """Elect until every partition has a leader, or there is nobody who may lead."""
        led: set[TopicPartition] = set()
        remaining = partitions
        while remaining:
            elected = self._elections(remaining, strategy)
            updates = {name: outcome.leadership for name, outcome in elected.items()}
            written = await self._term.store.update_leaderships(updates)
            self._context.leaderships |= written
            for name in written:
                batch.add_leader_and_isr(elected[name].recipients, name)
            led |= written.keys()
            remaining = await self._term.refresh(name for name in elected if name not in written)
        return led

    def _elections(
        self, partitions: list[TopicPartition], strategy: ElectionStrategy
    ) -> dict[TopicPartition, Elected]:
        elected = {}
        for name in partitions:
            outcome = elect(strategy, self._context.leaderships[name], self._candidates(name))
            if outcome is None:
                logger.error("no leader was elected partition=%s strategy=%s", name, strategy.name)
            else:
                elected[name] = outcome
        return elected

    def _candidates(self, name: TopicPartition) -> Candidates:
        context = self._context
        assignment = context.assignment(name)
        return Candidates(
            assignment,
            {replica for replica in assignment.replicas if context.is_online(replica, name)},
            context.shutting_down,
            self._term.configs.topic(name.topic).unclean_leader_election_enable,
        )

    # States

    def _move(self, partitions: Iterable[TopicPartition], target: PartitionState) -> None:
        for name in self._valid(partitions, target):
            self._set(name, target)

    def _set(self, name: TopicPartition, state: PartitionState) -> None:
        if state is PartitionState.NON_EXISTENT:
            self._context.partition_states.pop(name, None)
        else:
            self._context.partition_states[name] = state

    def _valid(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> list[TopicPartition]:
        """Those that may go to `target`; the others are named in the log, and stay."""
        valid = []
        for name in partitions:
            state = self._context.partition_states.get(name, PartitionState.NON_EXISTENT)
            if state in PARTITION_CAME_FROM[target]:
                valid.append(name)
            else:
                logger.error("partition %s cannot go from %s to %s", name, state, target)
        return valid
