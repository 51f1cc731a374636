"""Kafka's PartitionStateMachine: creates partitions, elects their leaders, takes them offline.

The states and the transitions that are allowed are in `states`. A transition that is not allowed is
logged and skipped: it is a bug of the caller, and the partition keeps its state.

Every change is made in this order:

    1. the new leader and ISR are decided from the controller's memory (ControllerContext);
    2. they are written to the store, guarded by the partition epoch (the version of the node) and
       by the controller epoch;
    3. memory is updated with what was written;
    4. the brokers are sent LeaderAndIsr and UpdateMetadata requests.

Deciding from memory is safe because only the controller changes a partition's state since KIP-497.
Where the store has another version nevertheless (an older broker wrote it), the state is read again
and the election repeated. A controller that stops between two steps leaves a store from which the
next one sends the requests again, to all brokers.
"""

import logging
from collections.abc import Iterable
from itertools import islice
from typing import Final

from broker.controller.controller_broker_request_batch import ControllerBrokerRequestBatch
from broker.controller.controller_services import ControllerServices
from broker.controller.leadership import Leadership
from broker.controller.partition_leader_election import Candidates, Elected, ElectionStrategy, elect
from broker.controller.states import PARTITION_CAME_FROM, PartitionState
from broker.model import TopicPartition

logger = logging.getLogger("state.change")

MAX_INITIALIZED_PER_EVENT: Final = 1000
"""New partitions that one event brings online. Creating a thousand logs takes about half a
second."""


class PartitionStateMachine:
    """The partitions of one controller epoch.

    It runs within controller events only, so nothing changes the context between deciding and
    writing, except the writes of older brokers that the module describes.
    """

    def __init__(self, services: ControllerServices) -> None:
        self._services = services
        self._context = services.context
        self._uninitialized: dict[TopicPartition, None] = {}
        """New partitions that a later event will bring online, in this order. May contain some
        that have left NEW meanwhile. Invariant: while it is not empty, that event is scheduled."""

    # Finding partitions to work on

    def initialize(self) -> None:
        """Derive the state of every partition from what was read from the store.

        States are not stored; only leader and ISR are. A partition without either was assigned by a
        controller that stopped before it wrote the first state, and is NEW again.
        """
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
        """Elect leaders for offline and new partitions, of one topic if it is given.

        Kafka's triggerOnlinePartitionStateChange. Only the first MAX_INITIALIZED_PER_EVENT new
        partitions are brought online here, the others by later events; see `initialize_new`.
        Returns whether each has a leader now.
        """
        waiting = self._context.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)
        wanted = [name for name in waiting if topic is None or name.topic == topic]
        states = self._context.partition_states
        offline = [name for name in wanted if states[name] is PartitionState.OFFLINE]
        # Offline partitions first: they hold records, and clients are waiting for them.
        elected = await self.bring_online(offline, ElectionStrategy.OFFLINE)
        new = [name for name in wanted if states[name] is PartitionState.NEW]
        return elected | await self.initialize_new(new)

    async def initialize_new(self, new: Iterable[TopicPartition]) -> dict[TopicPartition, bool]:
        """Bring new partitions online, as many per event as do not block the controller for long.

        A store may hold a topic of a million partitions that no broker has created yet: written by
        a tool, or by a controller that stopped half-way. Bringing them online at once would occupy
        the controller, and the start of its broker, for minutes. So one event handles
        MAX_INITIALIZED_PER_EVENT of them, and the next begins when this broker has created the
        logs of the previous one; requests, such as the deletion of that topic, are processed in
        between. Returns whether each partition of the first slice has a leader.
        """
        # If an event is scheduled it will reach these as well: a second one would create logs while
        # the brokers are still busy with the first slice.
        is_scheduled = bool(self._uninitialized)
        self._uninitialized.update(dict.fromkeys(new))
        return {} if is_scheduled else await self._initialize_slice()

    async def _initialize_slice(self) -> dict[TopicPartition, bool]:
        """Bring the next new partitions online, and schedule the event for those after them."""
        names = list(islice(self._uninitialized, MAX_INITIALIZED_PER_EVENT))
        for name in names:
            del self._uninitialized[name]
        states = self._context.partition_states
        # Between two slices other events run: a partition may have been brought online by a
        # request, and its topic may have been deleted.
        still_new = [
            name
            for name in names
            if states.get(name) is PartitionState.NEW
            and not self._context.is_being_deleted(name.topic)
        ]
        try:
            return await self.bring_online(still_new, ElectionStrategy.OFFLINE)
        finally:  # also after a failed write, which is retried, so that no partition is forgotten
            if self._uninitialized:
                logger.info("Bringing new partitions online remaining=%s", len(self._uninitialized))
                # Not before this broker has answered all requests sent so far, which includes
                # creating its logs of this slice. Other brokers are not waited for: they have
                # queues of their own.
                self._services.channels.on_flushed(
                    self._services.broker_id,
                    lambda: self._services.later("initialize partitions", self._initialize_slice),
                )

    # Transitions

    def create(self, partitions: Iterable[TopicPartition]) -> None:
        """Add new partitions: they have replicas and no leader yet.

        Nothing is written: the assignment is in the store already, and the first state follows in
        `bring_online`. A controller that stops in between leaves what `initialize` calls NEW.
        """
        self._move(partitions, PartitionState.NEW)

    def take_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Mark partitions as having lost their leader. Nothing is written or sent.

        The store keeps the last leader and ISR: the election that follows needs the ISR. Clients
        get a new leader, or the lack of one, with the UpdateMetadata that the caller sends.
        """
        self._move(partitions, PartitionState.OFFLINE)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions, which must be offline.

        Only from memory; TopicDeletionManager deletes the nodes when all replicas are gone.
        """
        self._move(partitions, PartitionState.NON_EXISTENT)

    async def bring_online(
        self,
        partitions: Iterable[TopicPartition],
        strategy: ElectionStrategy,
        first_of: Iterable[str] = (),
    ) -> dict[TopicPartition, bool]:
        """Elect leaders: the first one of new partitions, of others by `strategy`.

        `first_of` names topics of which no partition has a node in the store yet. Returns whether
        each partition has been given a leader. Without an eligible replica it has not: a new
        partition stays NEW, another one keeps the state it has.

        Requests are sent after all writes: one LeaderAndIsr per broker covers all partitions. If a
        write fails nothing is sent, and the partitions keep their states; the retry, or the next
        controller, elects again and sends the outcome.
        """
        valid = self._valid(partitions, PartitionState.ONLINE)
        states = self._context.partition_states
        new = [name for name in valid if states[name] is PartitionState.NEW]
        others = [name for name in valid if states[name] is not PartitionState.NEW]
        batch = self._services.batch()
        # Written before the states change: a partition is ONLINE only if the store has its leader.
        led = await self._initialize(new, batch, first_of)
        led |= await self._elect(others, strategy, batch)
        for name in led:
            self._set(name, PartitionState.ONLINE)
        batch.send()
        return {name: name in led for name in valid}

    async def _initialize(
        self,
        new: list[TopicPartition],
        batch: ControllerBrokerRequestBatch,
        first_of: Iterable[str],
    ) -> set[TopicPartition]:
        """Let the first live replica lead each new partition, with all live replicas in the ISR.

        No election is needed: the replicas are empty, and therefore in sync.

        Dead replicas are assigned but not in the ISR; they join it like any follower that was away.
        If the store has a state already, that one is used (`create_leaderships`): the previous
        controller wrote it and stopped.
        """
        first = {}
        for name in new:
            replicas = self._context.assignment(name).replicas
            online = [replica for replica in replicas if self._context.is_online(replica, name)]
            if online:
                first[name] = Leadership.first(online)
            else:
                logger.error(
                    "Failed to initialize partition, no replica is alive "
                    "partition=%s replicas=%s controller_epoch=%s",
                    name,
                    _ids(replicas),
                    self._services.epoch,
                )
        if not first:
            return set()
        created = await self._services.store.create_leaderships(first, list(first_of))
        self._context.leaderships |= created
        for name, state in created.items():
            batch.add_leader_and_isr(state.isr, name, is_new=True)
        return set(created)

    async def _elect(
        self,
        partitions: list[TopicPartition],
        strategy: ElectionStrategy,
        batch: ControllerBrokerRequestBatch,
    ) -> set[TopicPartition]:
        """Elect until every partition has a leader or turns out to have no eligible replica.

        One that was not written had another version in the store: it is read and elected again.

        Each round either writes a partition or reads a newer state of it, so the loop ends unless
        another writer changes the same partition every time. Kafka's electLeaderForPartitions.
        """
        led: set[TopicPartition] = set()
        remaining = partitions
        while remaining:
            elected = self._hold_elections(remaining, strategy)
            updates = {name: outcome.leadership for name, outcome in elected.items()}
            written = await self._services.store.update_leaderships(updates)
            self._context.leaderships |= written
            for name, state in written.items():
                # To the replicas that are alive; the others get it when their broker starts.
                batch.add_leader_and_isr(elected[name].recipients, name)
                self._context.num_elections += 1
                # Metric UncleanLeaderElectionsPerSec: `is_recovering` is set by unclean elections
                # only.
                self._context.num_unclean_elections += state.is_recovering
            led |= written.keys()
            remaining = await self._services.refresh(
                name for name in elected if name not in written
            )
        return led

    def _hold_elections(
        self, partitions: list[TopicPartition], strategy: ElectionStrategy
    ) -> dict[TopicPartition, Elected]:
        """The outcomes, of the partitions that have an eligible replica.

        The rules are in `partition_leader_election` and depend on nothing but their arguments.
        Without an outcome a partition keeps its state in the store, and a member of its ISR may
        come back.
        """
        elected = {}
        for name in partitions:
            outcome = elect(strategy, self._context.leaderships[name], self._candidates(name))
            if outcome is None:
                logger.error(
                    "Failed to elect leader for partition=%s strategy=%s controller_epoch=%s",
                    name,
                    strategy.value,
                    self._services.epoch,
                )
            else:
                elected[name] = outcome
        return elected

    def _candidates(self, name: TopicPartition) -> Candidates:
        """What an election depends on besides the current leader and ISR.

        Unclean elections are allowed by topic, and the setting is read each time: it may have been
        changed just to get a leader.
        """
        context = self._context
        assignment = context.assignment(name)
        return Candidates(
            assignment,
            {replica for replica in assignment.replicas if context.is_online(replica, name)},
            context.shutting_down,
            self._services.configs.topic(name.topic).unclean_leader_election_enable,
        )

    # States

    def _move(self, partitions: Iterable[TopicPartition], target: PartitionState) -> None:
        """Change the state in memory, where the table allows it."""
        for name in self._valid(partitions, target):
            self._set(name, target)

    def _set(self, name: TopicPartition, state: PartitionState) -> None:
        """Set and log the state; NON_EXISTENT partitions have no entry."""
        states = self._context.partition_states
        before = states.get(name, PartitionState.NON_EXISTENT)
        if state is PartitionState.NON_EXISTENT:
            states.pop(name, None)
        else:
            states[name] = state
        self._log_change(name, before, state)

    def _log_change(
        self, name: TopicPartition, before: PartitionState, state: PartitionState
    ) -> None:
        # One line per partition, as in Kafka's state-change.log: formatting them takes noticeable
        # time for a large topic.
        if not logger.isEnabledFor(logging.INFO):
            return
        known = self._context.leaderships.get(name)
        if state is PartitionState.ONLINE and known is not None:
            logger.info(
                "Changed partition state partition=%s from=%s to=%s leader=%s leader_epoch=%s "
                "isr=%s partition_epoch=%s controller_epoch=%s",
                name,
                before,
                state,
                known.leader,
                known.leader_epoch,
                _ids(known.isr),
                known.partition_epoch,
                self._services.epoch,
            )
        else:
            logger.info(
                "Changed partition state partition=%s from=%s to=%s replicas=%s "
                "controller_epoch=%s",
                name,
                before,
                state,
                _ids(self._context.assignment(name).replicas),
                self._services.epoch,
            )

    def _valid(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> list[TopicPartition]:
        """Those that may change to `target`; the others are logged and keep their state."""
        valid = []
        for name in partitions:
            state = self._context.partition_states.get(name, PartitionState.NON_EXISTENT)
            if state in PARTITION_CAME_FROM[target]:
                valid.append(name)
            else:
                logger.error(
                    "Partition should not change state partition=%s from=%s to=%s "
                    "controller_epoch=%s",
                    name,
                    state,
                    target,
                    self._services.epoch,
                )
        return valid


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids))
