"""Partition reassignments (KIP-455), by request or by /admin/reassign_partitions.

With Kafka's abbreviations: RS the replica set; ORS the original, TRS the target replica set; AR the
adding, RR the removing replicas.

    U  the assignment is written: RS = TRS + ORS, AR = TRS - ORS, RR = ORS - TRS. Replicas that an
       earlier reassignment was adding and that are not in TRS are stopped and deleted.
    A  some of TRS are not in the ISR: all replicas are sent the assignment in a new leader epoch,
       and AR begin to follow. The reassignment waits until AlterPartition reports them in the ISR.
    B  all of TRS are in the ISR: AR are online; the leader is one of TRS; RR leave the ISR, are
       stopped and deleted; then RS = TRS is written, and all brokers are sent the metadata.

RS = TRS is written last, because the store is the only place that holds ORS: a controller that is
elected in between finds the partition as before, and repeats A or B. Every step can be repeated.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from broker.controller.controller_context import Replica
from broker.controller.controller_services import ControllerServices
from broker.controller.partition_leader_election import ElectionStrategy
from broker.controller.partition_state_machine import PartitionStateMachine
from broker.controller.replica_assignment import (
    check_target,
    is_complete,
    is_reassigned,
    origin_of,
    reassign_to,
    target_of,
)
from broker.controller.replica_state_machine import ReplicaStateMachine
from broker.controller.topic_deletion_manager import TopicDeletionManager
from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import StoreWriteFailed
from broker.metadata.znodes.admin import ReassignPartitionsZnode
from broker.metadata.znodes.json_text import MalformedZnode
from broker.metadata.znodes.topics import ReplicaAssignment, TopicZnode
from broker.model import TopicPartition

logger = logging.getLogger(__name__)


class ReassignmentManager:
    """Starts, continues, completes and cancels reassignments, in one controller epoch.

    It has no state of its own: what is being reassigned is in the context (`reassigning`) and in
    the assignment of each partition (adding and removing replicas), both as in the store. That is
    why a reassignment can be continued by any controller, at any step.
    """

    def __init__(
        self,
        services: ControllerServices,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletionManager,
    ) -> None:
        self._services = services
        self._context = services.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    # Requests

    async def reassign(self, name: TopicPartition, target: Sequence[int] | None) -> None:
        """Reassign a partition to the `target` replicas; None cancels its reassignment.

        Returns when it is complete, or when it waits for replicas to come in sync. On an ApiError
        nothing has changed.
        """
        if target is not None:
            check_target(target, self._context.assignment(name), self._context.live_broker_ids)
        wanted = self._build(name, target)
        # The latest request wins: one for the same partition in the znode is removed there.
        await self._remove_from_reassign_znode(lambda partition, _: partition == name)
        await self._begin(name, wanted)

    def _build(self, name: TopicPartition, target: Sequence[int] | None) -> ReplicaAssignment:
        """The assignment to write: RS, AR and RR for this target.

        Cancelling is a reassignment back to ORS. A second request during a reassignment keeps
        ORS of the first.
        """
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
        """Start, unless the partition does not exist or its topic is being deleted."""
        is_there = bool(self._context.assignment(name).replicas)
        if not is_there or self._context.is_being_deleted(name.topic):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        await self._on_partition_reassignment(name, wanted)

    async def process_reassign_znode(self) -> set[TopicPartition]:
        """Start the reassignments in /admin/reassign_partitions; returns the partitions.

        Those that cannot be started are removed from the node, as in Kafka. Unlike in a request,
        the target brokers need not be alive.

        Since KIP-455 the node is only an interface for old tools: the progress is stored with the
        assignment. A partition is removed from the node when its reassignment is complete.
        """
        begun: set[TopicPartition] = set()
        failed: set[TopicPartition] = set()
        for name, target in (await self._read_reassign_znode()).items():
            if target_of(self._context.assignment(name)) == target and name in begun:
                continue
            try:
                await self._begin(name, self._build(name, target))
                begun.add(name)
            except StoreWriteFailed:
                raise  # not a wrong request: it is read again when the store can be written
            except ApiError as error:
                logger.warning("Ignoring reassignment of partition=%s: %s", name, error)
                failed.add(name)
        if failed:
            await self._remove_from_reassign_znode(lambda partition, _: partition in failed)
        return begun

    async def _read_reassign_znode(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The requested targets.

        A malformed node is deleted: it would block every later request of a tool, which creates the
        node.
        """
        node = await self._services.store.maybe_get(ReassignPartitionsZnode.PATH)
        if node is None:
            return {}
        try:
            return ReassignPartitionsZnode.decode(node.data)
        except MalformedZnode as error:
            logger.error("Ignoring malformed %s: %s", ReassignPartitionsZnode.PATH, error)
            await self._services.store.delete([ReassignPartitionsZnode.PATH])
            return {}

    async def _remove_from_reassign_znode(
        self, is_done: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        """Remove partitions from /admin/reassign_partitions, and the node with the last one.

        Tools take the existence of the node for a reassignment in progress.
        """
        requested = await self._read_reassign_znode()
        rest = {name: target for name, target in requested.items() if not is_done(name, target)}
        if not rest and requested:
            await self._services.store.delete([ReassignPartitionsZnode.PATH])
        elif len(rest) < len(requested):
            data = ReassignPartitionsZnode.encode(rest)
            await self._services.store.set_or_create(ReassignPartitionsZnode.PATH, data)

    # Reassignments that wait

    async def resume(self, is_due: Callable[[ReplicaAssignment], bool]) -> None:
        """Continue the reassignments whose assignment satisfies `is_due`.

        For example those that add a replica on a broker that has just started.
        """
        for name in sorted(self._context.reassigning):
            current = self._context.assignment(name)
            if is_due(current):
                await self._on_partition_reassignment(name, current)

    async def resume_all(self, but: Collection[TopicPartition]) -> None:
        """Continue all reassignments, as a new controller does, except those in `but`.

        The previous controller may have stopped after any write. `_on_partition_reassignment`
        begins with U again, which then writes nothing, and decides between A and B by the ISR.
        """
        for name in sorted(self._context.reassigning - set(but)):
            await self._on_partition_reassignment(name, self._context.assignment(name))

    async def maybe_complete(self, names: Iterable[TopicPartition]) -> None:
        """Complete reassignments whose target replicas are all in the ISR now.

        Called after every accepted AlterPartition; for most partitions there is nothing to do.
        """
        for name in names:
            known = self._context.leaderships.get(name)
            current = self._context.assignment(name)
            if (
                name in self._context.reassigning
                and known is not None
                and is_complete(current, known.isr)
            ):
                await self._on_partition_reassignment(name, current)

    # The steps of one reassignment

    async def _on_partition_reassignment(
        self, name: TopicPartition, wanted: ReplicaAssignment
    ) -> None:
        """Do the next steps of a reassignment; `wanted` is its assignment, with AR and RR.

        Called when it starts, when a target replica has come in sync, when a target broker has
        started, and by a new controller.

        Crashes: before U is written nothing has happened. Between U and B the store has AR and RR,
        and a new controller continues. Within B replicas of RR may be gone already, but not from
        the assignment: the new controller stops them again, which changes nothing, and writes TRS.
        """
        if name not in self._context.leaderships:
            await self._replace_unled(name, wanted)
            return
        # A topic is not deleted while it is being reassigned: its replicas are changing.
        self._deletion.mark_ineligible({name.topic})
        # The order matters: with AR in the store first, a crash after LeaderAndIsr leaves no
        # replica that no controller knows of, and whose files would never be deleted.
        await self._update(name, wanted)  # U
        if not is_complete(wanted, self._context.leaderships[name].isr):  # A
            await self._begin_new_epoch(name, wanted)
            new = self._unstarted(name, wanted.adding_replicas)
            # They are followers in the epoch that the others got above. Data is copied by their
            # fetchers; the controller hears of it only through AlterPartition.
            self._replicas.create(Replica(name, id_) for id_ in new)
            return
        # B. From here on the partition has only the target replicas, in memory first: an election
        # must not choose a replica that is about to be deleted.
        self._replicas.start_online(Replica(name, id_) for id_ in wanted.adding_replicas)
        done = ReplicaAssignment(target_of(wanted))
        self._context.assign(name, done)
        # Before RR are stopped: a leader among them must hand over first, or the partition would
        # have no leader until the next election.
        await self._move_leader(name, done)
        await self._stop(name, wanted.removing_replicas)
        await self._write(name, done)
        await self._remove_from_reassign_znode(
            lambda n, target: n == name and target == done.replicas
        )
        self._context.reassigning.discard(name)
        logger.info(
            "Completed reassignment of partition=%s replicas=%s",
            name,
            ",".join(map(str, done.replicas)),
        )
        self._services.send_metadata([name])
        await self._deletion.resume_deletion_for({name.topic})

    async def _replace_unled(self, name: TopicPartition, wanted: ReplicaAssignment) -> None:
        """Reassign a partition that never had a leader: it is empty, so nothing is replicated.

        Written before memory changes; then it is brought online like any new partition. It may stay
        NEW if all target brokers are dead.
        """
        done = ReplicaAssignment(target_of(wanted))
        await self._write(name, done)
        self._context.assign(name, done)
        self._context.reassigning.discard(name)
        self._replicas.create(Replica(name, id_) for id_ in self._unstarted(name, done.replicas))
        await self._partitions.bring_online([name], ElectionStrategy.OFFLINE)

    async def _update(self, name: TopicPartition, wanted: ReplicaAssignment) -> None:
        """U: write the assignment if it differs, and stop replicas that it does not contain.

        These were added by an earlier reassignment that this one replaces, and are never in ORS.
        """
        current = self._context.assignment(name)
        if current != wanted:
            await self._write(name, wanted)
            self._context.assign(name, wanted)
            await self._stop(name, [r for r in current.replicas if r not in wanted.replicas])
        self._context.reassigning.add(name)

    def _unstarted(self, name: TopicPartition, broker_ids: Iterable[int]) -> list[int]:
        """The brokers without a replica; in a resumed reassignment some have theirs already."""
        states = self._context.replica_states
        return [id_ for id_ in broker_ids if Replica(name, id_) not in states]

    async def _begin_new_epoch(self, name: TopicPartition, wanted: ReplicaAssignment) -> None:
        """Send all replicas the assignment in a new leader epoch: in an old one it is ignored.

        The leader stays the same. The new epoch fences fetches of replicas that are being removed,
        and the leader learns which replicas may join the ISR. Kafka's
        updateLeaderEpochAndSendRequest.
        """
        while True:
            state = self._context.leaderships[name]
            update = state.led_by(state.leader)
            written = await self._services.store.update_leaderships({name: update})
            if written:
                break
            # Another writer was faster: continue from its state. Without any, the partition was
            # deleted.
            if not await self._services.refresh([name]):
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} has no state")
        self._context.leaderships |= written
        batch = self._services.batch()
        batch.add_leader_and_isr(origin_of(wanted), name)
        batch.add_leader_and_isr(wanted.adding_replicas, name, is_new=True)
        batch.send()

    async def _move_leader(self, name: TopicPartition, done: ReplicaAssignment) -> None:
        """Elect one of the target replicas, or send the leader that only they remain.

        All targets are in the ISR here, so that the election is clean if any of them is alive.
        """
        leader = self._context.leaderships[name].leader
        if leader in done.replicas and self._context.is_online(leader, name):
            await self._begin_new_epoch(name, done)
        else:
            await self._partitions.bring_online([name], ElectionStrategy.REASSIGN)

    async def _stop(self, name: TopicPartition, broker_ids: Collection[int]) -> None:
        """Stop and delete replicas that were removed; the responses are not waited for.

        All states are passed through at once, as in Kafka: a dead broker must not hold up the
        reassignment.
        """
        replicas = [Replica(name, broker_id) for broker_id in broker_ids]
        await self._replicas.take_offline(replicas)
        self._replicas.start_deletion(replicas)
        self._replicas.complete_deletion(replicas)
        self._replicas.remove(replicas)

    async def _write(self, name: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Write the topic's node with another assignment of one partition."""
        assigned: Mapping[int, ReplicaAssignment] = {
            **self._context.assignments[name.topic],
            name.partition: assignment,
        }
        topic_id = self._context.topic_ids.get(name.topic)
        await self._services.store.set_topic(
            TopicZnode(name.topic, topic_id, dict(sorted(assigned.items())))
        )
