"""Takes replicas from state to state: starts, stops and deletes them on their brokers.

Kafka's ReplicaStateMachine. A replica that goes offline leaves the ISR; that is written first.
"""

import logging
from collections.abc import Iterable

from broker.controller.context import Replica
from broker.controller.request_batch import RequestBatch
from broker.controller.states import REPLICA_CAME_FROM, ReplicaState
from broker.controller.term import Term
from broker.model import TopicPartition

logger = logging.getLogger("state.change")


class ReplicaStateMachine:
    """The replicas of one controller term."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._context = term.context

    def initialize(self) -> None:
        """Find out in what state every replica is.

        Of a dead broker it cannot be told whether a deletion was under way: as Kafka does, it
        counts as one that has to wait, which is a way to OFFLINE and to another try.
        """
        for replica in self._context.replicas_of(self._context.partitions()):
            is_online = self._context.is_online(replica.broker_id, replica.partition)
            state = ReplicaState.ONLINE if is_online else ReplicaState.DELETION_INELIGIBLE
            self._context.replica_states[replica] = state

    async def start(self) -> None:
        """Stop the replicas of dead brokers, start the others."""
        states = self._context.replica_states
        online = [replica for replica, state in states.items() if state is ReplicaState.ONLINE]
        dead = [replica for replica, state in states.items() if state is not ReplicaState.ONLINE]
        await self.take_offline(dead)
        self.start_online(online)

    def create(self, replicas: Iterable[Replica]) -> None:
        """Let brokers follow with new replicas; of a partition not yet led, only know them."""
        batch = self._term.batch()
        for replica in self._valid(replicas, ReplicaState.NEW):
            known = self._context.leaderships.get(replica.partition)
            if known is not None and known.leader == replica.broker_id:
                logger.error("%s leads, and so it cannot be new", replica)
                continue
            if known is not None:
                batch.add_leader_and_isr([replica.broker_id], replica.partition, is_new=True)
            self._context.replica_states[replica] = ReplicaState.NEW
        batch.send()

    def start_online(self, replicas: Iterable[Replica]) -> None:
        """Let brokers lead or follow with the replicas they have; new ones do so already."""
        batch = self._term.batch()
        for replica in self._valid(replicas, ReplicaState.ONLINE):
            is_told = self._context.state_of(replica) is ReplicaState.NEW
            if not is_told and replica.partition in self._context.leaderships:
                batch.add_leader_and_isr([replica.broker_id], replica.partition)
            self._context.replica_states[replica] = ReplicaState.ONLINE
        batch.send()

    async def take_offline(self, replicas: Iterable[Replica]) -> None:
        """Stop replicas, which leave the ISR; the others of their partitions get to know it."""
        batch = self._term.batch()
        by_broker: dict[int, list[TopicPartition]] = {}
        for replica in self._valid(replicas, ReplicaState.OFFLINE):
            batch.add_stop_replica([replica.broker_id], replica.partition, delete=False)
            by_broker.setdefault(replica.broker_id, []).append(replica.partition)
        for broker_id, partitions in by_broker.items():
            await self._remove_from_isr(broker_id, partitions, batch)
            for partition in partitions:
                self._context.replica_states[Replica(partition, broker_id)] = ReplicaState.OFFLINE
        batch.send()

    async def _remove_from_isr(
        self, broker_id: int, partitions: list[TopicPartition], batch: RequestBatch
    ) -> None:
        batch.add_update_metadata(self._context.brokers, partitions)
        # Of a topic that is being deleted nobody will look at the ISR any more.
        remaining = [n for n in partitions if not self._context.is_being_deleted(n.topic)]
        while remaining:
            known = self._context.leaderships
            updates = {
                name: known[name].without(broker_id)
                for name in remaining
                if name in known and broker_id in known[name].isr
            }
            written = await self._term.store.update_leaderships(updates)
            self._context.leaderships |= written
            for name in written:
                others = (r for r in self._context.assignment(name).replicas if r != broker_id)
                batch.add_leader_and_isr(others, name)
            remaining = await self._term.refresh(name for name in updates if name not in written)

    def start_deletion(self, replicas: Iterable[Replica]) -> None:
        """Let brokers delete their replicas, which were stopped before."""
        batch = self._term.batch()
        for replica in self._valid(replicas, ReplicaState.DELETION_STARTED):
            batch.add_stop_replica([replica.broker_id], replica.partition, delete=True)
            self._context.replica_states[replica] = ReplicaState.DELETION_STARTED
        batch.send()

    def complete_deletion(self, replicas: Iterable[Replica]) -> None:
        """Note that replicas have been deleted."""
        self._move(replicas, ReplicaState.DELETION_SUCCESSFUL)

    def fail_deletion(self, replicas: Iterable[Replica]) -> None:
        """Note that replicas could not be deleted, or that there is nobody to ask."""
        self._move(replicas, ReplicaState.DELETION_INELIGIBLE)

    def remove(self, replicas: Iterable[Replica]) -> None:
        """Forget about deleted replicas, in the assignment too."""
        for replica in self._valid(replicas, ReplicaState.NON_EXISTENT):
            assigned = self._context.assignment(replica.partition)
            rest = type(assigned)(
                *(tuple(id_ for id_ in ids if id_ != replica.broker_id) for ids in assigned)
            )
            self._context.assign(replica.partition, rest)
            self._context.replica_states.pop(replica, None)

    def _move(self, replicas: Iterable[Replica], target: ReplicaState) -> None:
        for replica in self._valid(replicas, target):
            self._context.replica_states[replica] = target

    def _valid(self, replicas: Iterable[Replica], target: ReplicaState) -> list[Replica]:
        """Those that may go to `target`; the others are named in the log, and stay."""
        valid = []
        for replica in replicas:
            state = self._context.state_of(replica)
            if state in REPLICA_CAME_FROM[target]:
                valid.append(replica)
            else:
                logger.error(
                    "replica %s of %s cannot go from %s to %s",
                    replica.broker_id,
                    replica.partition,
                    state,
                    target,
                )
        return valid
