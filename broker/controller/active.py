"""The active controller: built when this broker is elected, discarded when it resigns.

Its start follows Kafka's onControllerFailover, and the order matters:

    1. /feature is created; watches are set. Changes made while the store is read give events, which
       run after the start: nothing that changes meanwhile is missed.
    2. Notifications are deleted: what they announce is about to be read anyway.
    3. Brokers, topics, assignments, leaders and ISRs are read into the ControllerContext.
    4. UpdateMetadata with all live brokers goes to every broker, before any LeaderAndIsr: a broker
       must know the address of a leader before it follows it.
    5. Partitions without a live leader get one, then replicas of dead brokers leave the ISRs, and
       every broker is sent LeaderAndIsr for all its replicas.
    6. Reassignments, topic deletions and preferred leader elections continue where the previous
       controller stopped.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from broker.controller.broker_change_handler import BrokerChangeHandler
from broker.controller.controller_context import Replica
from broker.controller.controller_services import ControllerServices
from broker.controller.isr_change_handler import IsrChangeHandler
from broker.controller.partition_state_machine import PartitionStateMachine
from broker.controller.reassignment_manager import ReassignmentManager
from broker.controller.replica_assignment import is_reassigned
from broker.controller.replica_leader_election import ReplicaLeaderElection
from broker.controller.replica_state_machine import ReplicaStateMachine
from broker.controller.states import ReplicaState
from broker.controller.topic_admin import TopicAdmin
from broker.controller.topic_deletion_manager import TopicDeletionManager
from broker.errors import ErrorCode
from broker.metadata.store import EventKind, Watch, WatchEvent, join
from broker.metadata.znodes.admin import (
    DELETE_TOPICS_PATH,
    PreferredReplicaElectionZnode,
    ReassignPartitionsZnode,
)
from broker.metadata.znodes.brokers import BROKER_IDS_PATH, BrokerIdZnode
from broker.metadata.znodes.cluster import FeatureZnode
from broker.metadata.znodes.json_text import MalformedZnode
from broker.metadata.znodes.notifications import IsrChangeZnode, LogDirEventZnode
from broker.metadata.znodes.topics import TOPICS_PATH, TopicZnode
from broker.model import TopicPartition
from broker.protocol.messages.stop_replica import StopReplicaResponse

logger = logging.getLogger(__name__)

_FIRST_REBALANCE_S = 5.0
"""Kafka's delay of the first check for preferred leaders; `leader.imbalance.check.interval.seconds`
is the delay between the later ones."""
_RETRY_DELAY_S = 5.0
"""Delay of the retry after a failed write. Kafka has no counterpart: only the embedded store shares
a disk with its broker."""


class ActiveController:
    """The parts of a controller in one controller epoch, and the watches that trigger them.

    The parts share the ControllerContext and are called by events only, one at a time. Each of them
    can be called again after it failed half-way: it compares the store with the context and does
    what is missing.

    Kafka builds them once per broker, and clears them when it resigns. Here nothing can be left
    over from an earlier epoch.
    """

    def __init__(self, services: ControllerServices) -> None:
        self.services = services
        # Each part is given the parts that it calls: the state machines call no other part.
        self.partitions = PartitionStateMachine(services)
        self.replicas = ReplicaStateMachine(services)
        self.deletion = TopicDeletionManager(services, self.partitions, self.replicas)
        self.reassigner = ReassignmentManager(
            services, self.partitions, self.replicas, self.deletion
        )
        self.brokers = BrokerChangeHandler(
            services, self.partitions, self.replicas, self.reassigner, self.deletion
        )
        self.topics = TopicAdmin(services, self.partitions, self.replicas, self.deletion)
        self.elections = ReplicaLeaderElection(services, self.partitions)
        self.isr_changes = IsrChangeHandler(services, self.reassigner)
        self._watches: dict[str, Watch] = {}
        """By path. Invariant: while this controller is active, every path has at most one."""
        self._watched: tuple[frozenset[str], frozenset[int]] = (frozenset(), frozenset())
        """The topics and brokers whose own nodes are watched."""
        self._rebalancing: asyncio.TimerHandle | None = None
        """The next check for preferred leaders; None if auto.leader.rebalance.enable is false."""
        self._retrying: asyncio.TimerHandle | None = None
        """Set while a retry after a failed write is scheduled."""

    # Start and end

    async def start(self) -> None:
        """Become the controller, in the order that the module describes.

        If a step fails, KafkaController resigns and the next controller begins again from the
        store. What this one has sent needs no undoing: brokers refuse requests of an older
        controller epoch.
        """
        # The steps of the module's description. 1:
        await self._enable_feature_versioning()
        self._watch_all()
        await self._delete_notifications()  # 2
        await self._load()  # 3
        # Before anything is elected or sent: topics that are being deleted get neither.
        await self.deletion.init(
            set(await self.services.store.children(DELETE_TOPICS_PATH))
            & self.services.context.assignments.keys()
        )
        self.services.send_metadata([])  # 4
        self.partitions.initialize()  # 5
        self.replicas.initialize()
        # Leaders before ISRs: a partition without leader serves no client, one with a dead member
        # in its ISR does.
        await self.partitions.elect_missing()
        await self.replicas.start()
        # 6. Requests in znodes first: they replace reassignments of the same partitions.
        resumed = await self.reassigner.process_reassign_znode()
        await self.reassigner.resume_all(resumed)
        await self.deletion.resume_deletions()
        await self.elections.process_preferred_replica_election()
        self.watch_topics_and_brokers()
        if self.services.configs.broker.auto_leader_rebalance_enable:
            self._rebalance_in(_FIRST_REBALANCE_S)

    def close(self) -> None:
        """Stop at once: nothing is written, sent or received any more.

        The store is closed first: an event that is waiting for it may continue after this.
        """
        # No await in here, so that no event of this controller runs between two steps.
        self.services.store.close()
        for watch in self._watches.values():
            watch.cancel()
        self._watches.clear()
        for timer in (self._rebalancing, self._retrying):
            if timer is not None:
                timer.cancel()
        self.services.channels.close()
        self.deletion.close()

    async def _enable_feature_versioning(self) -> None:
        """Create /feature, or enable it, with no finalized features (KIP-584).

        As Kafka's controller does from inter.broker.protocol.version 2.7 on. A ZooKeeper cluster
        has no feature that could be finalized; one that is enabled already is left as it is.
        """
        path = FeatureZnode.PATH
        node = await self.services.store.maybe_get(path)
        try:
            is_enabled = node is not None and FeatureZnode.decode(node.data).is_enabled
        except MalformedZnode as error:
            logger.error("leaving the features as they are: %s", error)
            return
        if not is_enabled:
            await self.services.store.set_or_create(path, FeatureZnode(is_enabled=True).encode())

    async def _delete_notifications(self) -> None:
        """Delete the notifications of changed ISRs and failed log directories.

        What they announce is read, or queried with LeaderAndIsr, by the rest of the start.
        """
        for parent in (LogDirEventZnode.PARENT, IsrChangeZnode.PARENT):
            names = await self.services.store.children(parent)
            await self.services.store.delete([join(parent, name) for name in names])

    async def _load(self) -> None:
        """Read brokers, topics and partition states, and open a channel to every broker.

        Brokers are read first. One that registers later gives an event of the watch, so that it is
        at worst seen twice; one that dies in between is removed by the next event.
        """
        store, context = self.services.store, self.services.context
        context.brokers.update(await store.brokers())
        topics = await self.topics.with_ids(await store.topics(await store.topic_names()))
        for topic in topics:
            context.add_topic(topic.topic, topic.topic_id)
            for index, assigned in topic.assignment.items():
                name = TopicPartition(topic.topic, index)
                context.assign(name, assigned)
                if is_reassigned(assigned):
                    context.reassigning.add(name)
        # A topic's node can exist without those of its partitions: a tool has written it, or a
        # controller stopped in between. Partitions without a state are NEW
        # (`PartitionStateMachine.initialize`).
        created = await store.created_partitions(context.assignments)
        context.leaderships.update(await store.leaderships(created))
        # Opens the channels; nothing is sent before step 4.
        self.brokers.connect(context.brokers)
        logger.info(
            "Initialized controller context epoch=%s brokers=%s topics=%s partitions=%s",
            self.services.epoch,
            sorted(context.brokers),
            len(topics),
            len(context.leaderships),
        )

    # After a failed write

    def retry_later(self) -> None:
        """Repeat what a full disk may have interrupted, a few seconds from now.

        An event that fails half-way leaves partitions that have no leader yet, or topics whose
        deletion has begun. Without a retry they would wait until a broker starts or fails.
        """
        # One timer, however many events fail: the retry covers all of them.
        if self._retrying is None:
            loop = asyncio.get_running_loop()
            self._retrying = loop.call_later(
                _RETRY_DELAY_S, self.services.later, "retry after failed write", self._retry
            )

    async def _retry(self) -> None:
        """Everything that an interrupted event may have left undone; harmless if it has not."""
        self._retrying = None
        # Topics first: the partitions of a new topic are NEW after that, and get leaders below.
        await self.topics.process_topic_change()
        await self.topics.process_topic_deletion()
        await self.partitions.elect_missing()
        await self.reassigner.resume_all(())
        await self.deletion.resume_deletions()

    # Watches

    def _watch_all(self) -> None:
        """Watch the nodes through which brokers and tools notify the controller.

        An event does not say what has changed. Its handler reads the node and compares it with the
        context, so that one event may stand for many changes.
        """
        store = self.services.store.store
        children: dict[str, Callable[[], Awaitable[object]]] = {
            BROKER_IDS_PATH: self.brokers.process_broker_change,
            TOPICS_PATH: self.topics.process_topic_change,
            DELETE_TOPICS_PATH: self.topics.process_topic_deletion,
            IsrChangeZnode.PARENT: self.isr_changes.process_isr_change_notification,
            LogDirEventZnode.PARENT: self.brokers.process_log_dir_event_notification,
        }
        nodes: dict[str, Callable[[], Awaitable[object]]] = {
            ReassignPartitionsZnode.PATH: self.reassigner.process_reassign_znode,
            PreferredReplicaElectionZnode.PATH: self.elections.process_preferred_replica_election,
        }
        for path, event in children.items():
            self._watches[path] = store.watch_children(path, self._on(path, event))
        for path, event in nodes.items():
            self._watches[path] = store.watch_data(path, self._on(path, event))

    def watch_topics_and_brokers(self) -> None:
        """Watch the nodes of all topics and brokers, and no longer those that are gone.

        Called after every event. Most events add and remove neither topics nor brokers, which the
        comparison with the previous sets shows without touching a watch.
        """
        context = self.services.context
        watched = (frozenset(context.assignments), frozenset(context.brokers))
        if watched == self._watched:
            return
        self._watched = watched
        wanted: dict[str, Callable[[], Awaitable[object]]] = {}
        for topic in context.assignments:
            wanted[TopicZnode.path(topic)] = partial(
                self.topics.process_partition_modifications, topic
            )
        for broker_id in context.brokers:
            wanted[BrokerIdZnode.path(broker_id)] = partial(
                self.brokers.process_broker_modification, broker_id
            )
        prefixes = (f"{TOPICS_PATH}/", f"{BROKER_IDS_PATH}/")
        for path in [p for p in self._watches if p.startswith(prefixes) and p not in wanted]:
            self._watches.pop(path).cancel()
        for path, event in wanted.items():
            if path not in self._watches:
                store = self.services.store.store
                self._watches[path] = store.watch_data(path, self._on(path, event))

    def _on(
        self, path: str, event: Callable[[], Awaitable[object]]
    ) -> Callable[[WatchEvent], None]:
        """A callback that queues `event`, once per path however often the watch fires."""

        def noticed(change: WatchEvent) -> None:
            # An expired session ends the controllership as a whole: `KafkaController._expired`.
            if change.kind is not EventKind.SESSION_EXPIRED:
                self.services.later(path, event)

        return noticed

    # Responses and timers

    async def process_stop_replica_response(
        self, broker_id: int, response: StopReplicaResponse, asked: frozenset[TopicPartition]
    ) -> None:
        """Continue the deletion of topics whose replicas a broker has deleted, or failed to.

        `asked` are the partitions that the broker was sent to delete. Replicas that were removed by
        a reassignment are among them, and need no further action.
        """
        context = self.services.context
        # A response may be late: the topic's deletion may have been halted, or the topic created
        # again. Only replicas that are still in DELETION_STARTED are concerned.
        going = {
            name
            for name in asked
            if context.state_of(Replica(name, broker_id)) is ReplicaState.DELETION_STARTED
        }
        failed = {
            TopicPartition(error.topic_name, error.partition_index)
            for error in response.partition_errors
            if error.error_code
        }
        if response.error_code:
            code = ErrorCode.name_of(response.error_code)
            logger.error("Broker rejected StopReplica broker=%s error=%s", broker_id, code)
            failed = going
        await self.deletion.fail_replica_deletion(
            Replica(name, broker_id) for name in going & failed
        )
        await self.deletion.complete_replica_deletion(
            Replica(name, broker_id) for name in going - failed
        )

    def _rebalance_in(self, seconds: float) -> None:
        """Schedule the next check for preferred leaders."""
        loop = asyncio.get_running_loop()
        self._rebalancing = loop.call_later(
            seconds, self.services.later, "leader rebalance", self._rebalance
        )

    async def _rebalance(self) -> None:
        try:
            await self.elections.rebalance()
        finally:
            # Also after a failure: the next check does not depend on this one. Kafka's
            # autoLeaderRebalance does the same.
            self._rebalance_in(self.services.configs.broker.leader_imbalance_check_interval_seconds)
