"""Kafka's ReplicaStateMachine: starts, stops and deletes replicas on their brokers.

The states and the transitions that are allowed are in `states`. As with partitions, a change is
written to the store before the brokers are sent requests: a replica that goes offline leaves the
ISR first. Transitions that are not allowed are logged and skipped.
"""

import logging
from collections.abc import Iterable

from broker.controller.controller_broker_request_batch import ControllerBrokerRequestBatch
from broker.controller.controller_context import Replica
from broker.controller.controller_services import ControllerServices
from broker.controller.states import REPLICA_CAME_FROM, ReplicaState
from broker.model import TopicPartition

logger = logging.getLogger("state.change")


class ReplicaStateMachine:
    """The replicas of one controller epoch.

    States are kept in the context, one per replica. The store holds only what follows from them:
    assignment and ISR. So a new controller derives them again (`initialize`).
    """

    def __init__(self, services: ControllerServices) -> None:
        self._services = services
        self._context = services.context

    def initialize(self) -> None:
        """Derive the state of every replica from what was read from the store.

        The store does not tell whether a deletion was in progress on a dead broker. As in Kafka
        such a replica counts as one whose deletion has failed: from there it can go OFFLINE, and
        its deletion can be started again.
        """
        for replica in self._context.replicas_of(self._context.partitions()):
            is_online = self._context.is_online(replica.broker_id, replica.partition)
            state = ReplicaState.ONLINE if is_online else ReplicaState.DELETION_INELIGIBLE
            self._context.replica_states[replica] = state

    async def start(self) -> None:
        """Take the replicas of dead brokers offline, and send the others their leaders.

        Kafka's ReplicaStateMachine.startup. Every live replica gets LeaderAndIsr, also where
        nothing has changed: the previous controller may have written a leader and stopped before it
        sent it.
        """
        states = self._context.replica_states
        online = [replica for replica, state in states.items() if state is ReplicaState.ONLINE]
        dead = [replica for replica, state in states.items() if state is not ReplicaState.ONLINE]
        # First, so that the requests to the others contain the ISRs without the dead replicas.
        await self.take_offline(dead)
        self.start_online(online)

    def create(self, replicas: Iterable[Replica]) -> None:
        """Add new replicas and let them follow; of a partition without leader, only add them.

        The brokers of the latter get LeaderAndIsr when the partition comes online.

        Used for new topics and for replicas that a reassignment adds. `is_new` lets a broker create
        the log even if one of its log directories is offline, where the replica might be otherwise.
        """
        batch = self._services.batch()
        for replica in self._valid(replicas, ReplicaState.NEW):
            known = self._context.leaderships.get(replica.partition)
            # A leader holds the partition's records, so it cannot be new: a bug of the caller.
            if known is not None and known.leader == replica.broker_id:
                logger.error(
                    "Replica cannot be new, it is the leader partition=%s replica=%s",
                    replica.partition,
                    replica.broker_id,
                )
                continue
            if known is not None:
                batch.add_leader_and_isr([replica.broker_id], replica.partition, is_new=True)
            self._set(replica, ReplicaState.NEW)
        batch.send()

    def start_online(self, replicas: Iterable[Replica]) -> None:
        """Send brokers the leader and ISR of the replicas they hold.

        Nothing is sent for a NEW replica: its broker got that when the replica was created.

        Used when a broker has started, and for the replicas of a completed reassignment.
        """
        batch = self._services.batch()
        for replica in self._valid(replicas, ReplicaState.ONLINE):
            is_sent = self._context.state_of(replica) is ReplicaState.NEW
            if not is_sent and replica.partition in self._context.leaderships:
                batch.add_leader_and_isr([replica.broker_id], replica.partition)
            self._set(replica, ReplicaState.ONLINE)
        batch.send()

    async def take_offline(self, replicas: Iterable[Replica]) -> None:
        """Stop replicas and remove them from the ISR; the other replicas get the new ISR.

        StopReplica is queued also for dead brokers, which have no channel and do not get it. For a
        live broker it comes after the store has the new ISR: until then the leader would count on a
        follower that does not fetch any more.
        """
        batch = self._services.batch()
        by_broker: dict[int, list[TopicPartition]] = {}
        for replica in self._valid(replicas, ReplicaState.OFFLINE):
            batch.add_stop_replica([replica.broker_id], replica.partition, delete=False)
            by_broker.setdefault(replica.broker_id, []).append(replica.partition)
        for broker_id, partitions in by_broker.items():
            # A crash after this write and before the requests: the next controller finds the new
            # ISR in the store and sends it to all replicas.
            await self._remove_from_isr(broker_id, partitions, batch)
            for partition in partitions:
                self._set(Replica(partition, broker_id), ReplicaState.OFFLINE)
        batch.send()

    async def _remove_from_isr(
        self,
        broker_id: int,
        partitions: list[TopicPartition],
        batch: ControllerBrokerRequestBatch,
    ) -> None:
        """Write the ISRs without this broker; repeated where the store had another version.

        A leader that is removed leaves the partition without leader (-1); the caller elects a new
        one. The last member stays in the ISR (`Leadership.without`): only it has all committed
        records. Kafka's doRemoveReplicasFromIsr.
        """
        # All brokers, not only the replicas: each must stop naming this one in Metadata responses.
        batch.add_update_metadata(self._context.brokers, partitions)
        # The ISR of a topic that is being deleted does not matter any more.
        remaining = [n for n in partitions if not self._context.is_being_deleted(n.topic)]
        while remaining:
            known = self._context.leaderships
            updates = {
                name: known[name].without(broker_id)
                for name in remaining
                if name in known and broker_id in known[name].isr
            }
            written = await self._services.store.update_leaderships(updates)
            self._context.leaderships |= written
            for name, state in written.items():
                logger.info(
                    "Removed replica from ISR partition=%s replica=%s leader=%s leader_epoch=%s "
                    "isr=%s controller_epoch=%s",
                    name,
                    broker_id,
                    state.leader,
                    state.leader_epoch,
                    ",".join(map(str, state.isr)),
                    self._services.epoch,
                )
                # The leader among them shrinks its ISR and may raise the high watermark at once.
                others = (r for r in self._context.assignment(name).replicas if r != broker_id)
                batch.add_leader_and_isr(others, name)
            remaining = await self._services.refresh(
                name for name in updates if name not in written
            )

    def start_deletion(self, replicas: Iterable[Replica]) -> None:
        """Send brokers the request to delete their replicas, which must be offline.

        The responses arrive as events: `ActiveController.process_stop_replica_response`. A broker
        that dies before it answers makes the replica ineligible; the deletion starts again with the
        broker.
        """
        batch = self._services.batch()
        for replica in self._valid(replicas, ReplicaState.DELETION_STARTED):
            batch.add_stop_replica([replica.broker_id], replica.partition, delete=True)
            self._set(replica, ReplicaState.DELETION_STARTED)
        batch.send()

    def complete_deletion(self, replicas: Iterable[Replica]) -> None:
        """Mark replicas as deleted by their brokers.

        They stay in memory until the whole topic is gone: `resume_deletions` counts them.
        """
        self._move(replicas, ReplicaState.DELETION_SUCCESSFUL)

    def fail_deletion(self, replicas: Iterable[Replica]) -> None:
        """Mark replicas whose broker could not delete them, or is dead."""
        self._move(replicas, ReplicaState.DELETION_INELIGIBLE)

    def remove(self, replicas: Iterable[Replica]) -> None:
        """Remove deleted replicas, from the assignment as well.

        Only in memory. The caller writes the assignment, or deletes the topic's node.
        """
        for replica in self._valid(replicas, ReplicaState.NON_EXISTENT):
            assigned = self._context.assignment(replica.partition)
            rest = type(assigned)(
                *(tuple(id_ for id_ in ids if id_ != replica.broker_id) for ids in assigned)
            )
            self._context.assign(replica.partition, rest)
            self._set(replica, ReplicaState.NON_EXISTENT)

    def _move(self, replicas: Iterable[Replica], target: ReplicaState) -> None:
        """Change the state in memory, where the table allows it."""
        for replica in self._valid(replicas, target):
            self._set(replica, target)

    def _set(self, replica: Replica, state: ReplicaState) -> None:
        """Set and log the state; NON_EXISTENT replicas have no entry."""
        before = self._context.state_of(replica)
        if state is ReplicaState.NON_EXISTENT:
            self._context.replica_states.pop(replica, None)
        else:
            self._context.replica_states[replica] = state
        # At DEBUG, as there is one for each replica of each partition; Kafka uses TRACE.
        logger.debug(
            "Changed replica state partition=%s replica=%s from=%s to=%s controller_epoch=%s",
            replica.partition,
            replica.broker_id,
            before,
            state,
            self._services.epoch,
        )

    def _valid(self, replicas: Iterable[Replica], target: ReplicaState) -> list[Replica]:
        """The replicas that may change to `target`; the others are logged and keep their state."""
        valid = []
        for replica in replicas:
            state = self._context.state_of(replica)
            if state in REPLICA_CAME_FROM[target]:
                valid.append(replica)
            else:
                logger.error(
                    "Replica should not change state partition=%s replica=%s from=%s to=%s "
                    "controller_epoch=%s",
                    replica.partition,
                    replica.broker_id,
                    state,
                    target,
                    self._services.epoch,
                )
        return valid
