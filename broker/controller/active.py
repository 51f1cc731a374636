"""The controller while it is one: built at its election, thrown away when it resigns."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from broker.controller.brokers import Brokers
from broker.controller.context import Replica
from broker.controller.deletion import TopicDeletion
from broker.controller.elections import Elections
from broker.controller.isr_changes import IsrChanges
from broker.controller.partition_machine import PartitionStateMachine
from broker.controller.reassigning import Reassigner
from broker.controller.reassignment import is_reassigned
from broker.controller.replica_machine import ReplicaStateMachine
from broker.controller.states import ReplicaState
from broker.controller.term import Term
from broker.controller.topic_admin import TopicAdmin
from broker.errors import ErrorCode
from broker.metadata.store import EventKind, Watch, WatchEvent, join
from broker.metadata.znodes.admin import (
    DELETE_TOPICS_PATH,
    PreferredReplicaElectionZnode,
    ReassignPartitionsZnode,
)
from broker.metadata.znodes.brokers import BROKER_IDS_PATH, BrokerIdZnode
from broker.metadata.znodes.notifications import IsrChangeZnode, LogDirEventZnode
from broker.metadata.znodes.topics import TOPICS_PATH, TopicZnode
from broker.model import TopicPartition
from broker.protocol.messages.stop_replica import StopReplicaResponse

logger = logging.getLogger(__name__)

_FIRST_REBALANCE_S = 5.0


class ActiveController:
    """All parts of one controller term, and the watches that set them going."""

    def __init__(self, term: Term) -> None:
        self.term = term
        self.partitions = PartitionStateMachine(term)
        self.replicas = ReplicaStateMachine(term)
        self.deletion = TopicDeletion(term, self.partitions, self.replicas)
        self.reassigner = Reassigner(term, self.partitions, self.replicas, self.deletion)
        self.brokers = Brokers(term, self.partitions, self.replicas, self.reassigner, self.deletion)
        self.topics = TopicAdmin(term, self.partitions, self.replicas, self.deletion)
        self.elections = Elections(term, self.partitions)
        self.isr_changes = IsrChanges(term, self.reassigner)
        self._watches: dict[str, Watch] = {}
        self._watched: tuple[frozenset[str], frozenset[int]] = (frozenset(), frozenset())
        """The topics and brokers that are watched one by one."""
        self._rebalancing: asyncio.TimerHandle | None = None

    # From beginning to end

    async def start(self) -> None:
        """Watch, read everything, tell everybody, elect what has no leader, go on with the rest.

        Watches come first: whatever changes while the rest is read is looked at again afterwards.
        """
        self._watch_all()
        await self._delete_old_notes()
        await self._load()
        await self.deletion.start(
            set(await self.term.store.children(DELETE_TOPICS_PATH))
            & self.term.context.assignments.keys()
        )
        # Brokers must know each other before they are told whom to follow.
        self.term.send_metadata([])
        self.partitions.initialize()
        self.replicas.initialize()
        # Leaders first: a partition without one serves nobody, an ISR with a dead member does.
        await self.partitions.elect_missing()
        await self.replicas.start()
        resumed = await self.reassigner.read_wishes()
        await self.reassigner.resume_all(resumed)
        await self.deletion.go_on()
        await self.elections.read_wishes()
        self.watch_topics_and_brokers()
        if self.term.configs.broker.auto_leader_rebalance_enable:
            self._rebalance_in(_FIRST_REBALANCE_S)

    def close(self) -> None:
        """Stop at once: nothing is written, sent or noticed any more."""
        self.term.store.close()
        for watch in self._watches.values():
            watch.cancel()
        self._watches.clear()
        if self._rebalancing is not None:
            self._rebalancing.cancel()
        self.term.channels.close()
        self.deletion.close()

    async def _delete_old_notes(self) -> None:
        """Notes of ISRs and directories: what they say is about to be read, and asked, anyway."""
        for parent in (LogDirEventZnode.PARENT, IsrChangeZnode.PARENT):
            names = await self.term.store.children(parent)
            await self.term.store.delete([join(parent, name) for name in names])

    async def _load(self) -> None:
        store, context = self.term.store, self.term.context
        context.brokers.update(await store.brokers())
        topics = await self.topics.with_ids(await store.topics(await store.topic_names()))
        for topic in topics:
            context.add_topic(topic.topic, topic.topic_id)
            for index, assigned in topic.assignment.items():
                name = TopicPartition(topic.topic, index)
                context.assign(name, assigned)
                if is_reassigned(assigned):
                    context.reassigning.add(name)
        context.leaderships.update(await store.leaderships(context.partitions()))
        self.brokers.connect(context.brokers)
        logger.info(
            "controller epoch=%s brokers=%s topics=%s partitions=%s",
            self.term.epoch,
            sorted(context.brokers),
            len(topics),
            len(context.leaderships),
        )

    # Watches

    def _watch_all(self) -> None:
        store = self.term.store.store
        children: dict[str, Callable[[], Awaitable[object]]] = {
            BROKER_IDS_PATH: self.brokers.changed,
            TOPICS_PATH: self.topics.changed,
            DELETE_TOPICS_PATH: self.topics.deletions_changed,
            IsrChangeZnode.PARENT: self.isr_changes.noted,
            LogDirEventZnode.PARENT: self.brokers.log_dirs_failed,
        }
        nodes: dict[str, Callable[[], Awaitable[object]]] = {
            ReassignPartitionsZnode.PATH: self.reassigner.read_wishes,
            PreferredReplicaElectionZnode.PATH: self.elections.read_wishes,
        }
        for path, event in children.items():
            self._watches[path] = store.watch_children(path, self._on(path, event))
        for path, event in nodes.items():
            self._watches[path] = store.watch_data(path, self._on(path, event))

    def watch_topics_and_brokers(self) -> None:
        """Watch what every topic and every broker says of itself; forget those that are gone."""
        context = self.term.context
        watched = (frozenset(context.assignments), frozenset(context.brokers))
        if watched == self._watched:
            return
        self._watched = watched
        wanted: dict[str, Callable[[], Awaitable[object]]] = {}
        for topic in context.assignments:
            wanted[TopicZnode.path(topic)] = partial(self.topics.partitions_changed, topic)
        for broker_id in context.brokers:
            wanted[BrokerIdZnode.path(broker_id)] = partial(self.brokers.modified, broker_id)
        prefixes = (f"{TOPICS_PATH}/", f"{BROKER_IDS_PATH}/")
        for path in [p for p in self._watches if p.startswith(prefixes) and p not in wanted]:
            self._watches.pop(path).cancel()
        for path, event in wanted.items():
            if path not in self._watches:
                store = self.term.store.store
                self._watches[path] = store.watch_data(path, self._on(path, event))

    def _on(
        self, path: str, event: Callable[[], Awaitable[object]]
    ) -> Callable[[WatchEvent], None]:
        def noticed(change: WatchEvent) -> None:
            if change.kind is not EventKind.SESSION_EXPIRED:
                self.term.later(path, event)

        return noticed

    # Answers, and what comes round

    async def replicas_deleted(
        self, broker_id: int, response: StopReplicaResponse, asked: frozenset[TopicPartition]
    ) -> None:
        """Go on with deletions whose replicas a broker has deleted, or could not delete.

        Others were deleted after a reassignment, and nobody waits for them.
        """
        context = self.term.context
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
            logger.error("StopReplica was refused broker=%s code=%s", broker_id, code)
            failed = going
        await self.deletion.failed(Replica(name, broker_id) for name in going & failed)
        await self.deletion.succeeded(Replica(name, broker_id) for name in going - failed)

    def _rebalance_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._rebalancing = loop.call_later(
            seconds, self.term.later, "leader rebalance", self._rebalance
        )

    async def _rebalance(self) -> None:
        try:
            await self.elections.rebalance()
        finally:
            self._rebalance_in(self.term.configs.broker.leader_imbalance_check_interval_seconds)
