"""Carries out reassignments (KIP-455), however they were asked for.

In Kafka's words: RS the replicas, ORS those before, TRS those after; AR are added, RR removed.

    U  the assignment is written: RS = TRS + ORS, AR = TRS - ORS, RR = ORS - TRS. What an earlier
       reassignment was adding and this one does not want is stopped and deleted.
    A  some of TRS are not in sync: a new leader epoch tells everybody of the replicas, AR follow.
    B  all of TRS are in sync: AR are online; the leader is one of TRS; RR leave the ISR, are
       stopped and deleted; then RS = TRS is written, and everybody is told.

RS = TRS is written last, because the store is the only place where ORS stands: a controller that is
elected in the middle finds the partition as before, and goes through A or B again.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from broker.controller.context import Replica
from broker.controller.deletion import TopicDeletion
from broker.controller.election import ElectionStrategy
from broker.controller.partition_machine import PartitionStateMachine
from broker.controller.reassignment import (
    check_target,
    is_complete,
    is_reassigned,
    origin_of,
    reassign_to,
    target_of,
)
from broker.controller.replica_machine import ReplicaStateMachine
from broker.controller.term import Term
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.admin import ReassignPartitionsZnode
from broker.metadata.znodes.json_text import MalformedZnode
from broker.metadata.znodes.topics import ReplicaAssignment, TopicZnode
from broker.model import TopicPartition

logger = logging.getLogger(__name__)


class Reassigner:
    """The reassignments of one controller term."""

    def __init__(
        self,
        term: Term,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletion,
    ) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    # What is asked for

    async def reassign(self, name: TopicPartition, target: Sequence[int] | None) -> None:
        """Let a partition have the `target` replicas; None cancels what is under way.

        Where replicas have to come or go that are not in sync, that stays under way. ApiError says
        why it cannot be, and then nothing has changed.
        """
        if target is not None:
            check_target(target, self._context.assignment(name), self._context.live_broker_ids)
        wanted = self._build(name, target)
        # The latest wish counts: one for the same partition that came by the znode is taken out.
        await self._forget_wishes(lambda partition, _: partition == name)
        await self._begin(name, wanted)

    def _build(self, name: TopicPartition, target: Sequence[int] | None) -> ReplicaAssignment:
        current = self._context.assignment(name)
        if target is None:
            if not is_reassigned(current):
                raise ApiError(
                    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                    "No partition reassignment is in progress.",
                )
            target = origin_of(current)
        return reassign_to(current, target)

    async def _begin(self, name: TopicPartition, wanted: ReplicaAssignment) -> None:
        is_there = bool(self._context.assignment(name).replicas)
        if not is_there or self._context.is_being_deleted(name.topic):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        await self._carry_out(name, wanted)

    async def read_wishes(self) -> set[TopicPartition]:
        """Do what /admin/reassign_partitions asks for; gives what was begun.

        What cannot be is taken out of the node, as Kafka does. Brokers are not checked there.
        """
        begun: set[TopicPartition] = set()
        failed: set[TopicPartition] = set()
        for name, target in (await self._wishes()).items():
            if target_of(self._context.assignment(name)) == target and name in begun:
                continue
            try:
                await self._begin(name, self._build(name, target))
                begun.add(name)
            except ApiError as error:
                logger.warning("not reassigned partition=%s reason=%s", name, error)
                failed.add(name)
        if failed:
            await self._forget_wishes(lambda partition, _: partition in failed)
        return begun

    async def _wishes(self) -> dict[TopicPartition, tuple[int, ...]]:
        node = await self._term.store.maybe_get(ReassignPartitionsZnode.PATH)
        if node is None:
            return {}
        try:
            return ReassignPartitionsZnode.decode(node.data)
        except MalformedZnode as error:
            logger.error("nothing is reassigned: %s", error)
            await self._term.store.delete([ReassignPartitionsZnode.PATH])
            return {}

    async def _forget_wishes(
        self, is_done: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        """Take partitions out of /admin/reassign_partitions; the node goes with the last one."""
        wishes = await self._wishes()
        rest = {name: target for name, target in wishes.items() if not is_done(name, target)}
        if not rest and wishes:
            await self._term.store.delete([ReassignPartitionsZnode.PATH])
        elif len(rest) < len(wishes):
            data = ReassignPartitionsZnode.encode(rest)
            await self._term.store.set_or_create(ReassignPartitionsZnode.PATH, data)

    # What goes on by itself

    async def resume(self, is_due: Callable[[ReplicaAssignment], bool]) -> None:
        """Go on with the reassignments for which this is a good moment."""
        for name in sorted(self._context.reassigning):
            current = self._context.assignment(name)
            if is_due(current):
                await self._carry_out(name, current)

    async def resume_all(self, but: Collection[TopicPartition]) -> None:
        """Go on with the reassignments of an earlier controller, save those just begun."""
        for name in sorted(self._context.reassigning - set(but)):
            await self._carry_out(name, self._context.assignment(name))

    async def maybe_complete(self, names: Iterable[TopicPartition]) -> None:
        """Complete reassignments whose new replicas have come in sync."""
        for name in names:
            known = self._context.leaderships.get(name)
            current = self._context.assignment(name)
            if (
                name in self._context.reassigning
                and known is not None
                and is_complete(current, known.isr)
            ):
                await self._carry_out(name, current)

    # Carrying out

    async def _carry_out(self, name: TopicPartition, wanted: ReplicaAssignment) -> None:
        if name not in self._context.leaderships:
            await self._replace_unled(name, wanted)
            return
        self._deletion.hold({name.topic})  # what is being moved is not deleted
        await self._update(name, wanted)  # U
        if not is_complete(wanted, self._context.leaderships[name].isr):  # A
            await self._begin_new_epoch(name, wanted)
            new = self._unstarted(name, wanted.adding_replicas)
            self._replicas.create(Replica(name, id_) for id_ in new)
            return
        # B
        self._replicas.start_online(Replica(name, id_) for id_ in wanted.adding_replicas)
        done = ReplicaAssignment(target_of(wanted))
        self._context.assign(name, done)
        await self._move_leader(name, done)
        await self._stop(name, wanted.removing_replicas)
        await self._write(name, done)
        await self._forget_wishes(lambda n, target: n == name and target == done.replicas)
        self._context.reassigning.discard(name)
        logger.info("reassigned partition=%s replicas=%s", name, done.replicas)
        self._term.send_metadata([name])
        await self._deletion.resume({name.topic})

    async def _replace_unled(self, name: TopicPartition, wanted: ReplicaAssignment) -> None:
        """A partition that was never led is empty: there is nobody to come in sync with."""
        done = ReplicaAssignment(target_of(wanted))
        await self._write(name, done)
        self._context.assign(name, done)
        self._context.reassigning.discard(name)
        self._replicas.create(Replica(name, id_) for id_ in self._unstarted(name, done.replicas))
        await self._partitions.bring_online([name], ElectionStrategy.OFFLINE)

    async def _update(self, name: TopicPartition, wanted: ReplicaAssignment) -> None:
        current = self._context.assignment(name)
        if current != wanted:
            await self._write(name, wanted)
            self._context.assign(name, wanted)
            await self._stop(name, [r for r in current.replicas if r not in wanted.replicas])
        self._context.reassigning.add(name)

    def _unstarted(self, name: TopicPartition, broker_ids: Iterable[int]) -> list[int]:
        """Those that have no replica yet: of a resumed reassignment some have."""
        states = self._context.replica_states
        return [id_ for id_ in broker_ids if Replica(name, id_) not in states]

    async def _begin_new_epoch(self, name: TopicPartition, wanted: ReplicaAssignment) -> None:
        """Tell every replica of the assignment, in a new leader epoch so that it counts."""
        while True:
            state = self._context.leaderships[name]
            update = state.led_by(state.leader)
            written = await self._term.store.update_leaderships({name: update})
            if written:
                break
            if not await self._term.refresh([name]):
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} has no state")
        self._context.leaderships |= written
        batch = self._term.batch()
        batch.add_leader_and_isr(origin_of(wanted), name)
        batch.add_leader_and_isr(wanted.adding_replicas, name, is_new=True)
        batch.send()

    async def _move_leader(self, name: TopicPartition, done: ReplicaAssignment) -> None:
        """Let one of the replicas that stay lead, and the leader know that only they do."""
        leader = self._context.leaderships[name].leader
        if leader in done.replicas and self._context.is_online(leader, name):
            await self._begin_new_epoch(name, done)
        else:
            await self._partitions.bring_online([name], ElectionStrategy.REASSIGN)

    async def _stop(self, name: TopicPartition, broker_ids: Collection[int]) -> None:
        """Stop and delete replicas that the partition has no more; nobody waits for the answers."""
        replicas = [Replica(name, broker_id) for broker_id in broker_ids]
        await self._replicas.take_offline(replicas)
        self._replicas.start_deletion(replicas)
        self._replicas.complete_deletion(replicas)
        self._replicas.remove(replicas)

    async def _write(self, name: TopicPartition, assignment: ReplicaAssignment) -> None:
        assigned: Mapping[int, ReplicaAssignment] = {
            **self._context.assignments[name.topic],
            name.partition: assignment,
        }
        topic_id = self._context.topic_ids.get(name.topic)
        await self._term.store.set_topic(
            TopicZnode(name.topic, topic_id, dict(sorted(assigned.items())))
        )
