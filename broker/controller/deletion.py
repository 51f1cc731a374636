"""Deletes topics: Kafka's TopicDeletionManager.

A topic that shall go stands in /admin/delete_topics until nothing is left of it, so that the next
controller goes on where this one stopped. The brokers forget its partitions, its replicas are
stopped, then deleted. While a replica cannot be (its broker is dead, its directory has failed, it
is being reassigned) the topic is ineligible, and is tried again when that has changed.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable

from broker.config.dynamic import EntityType
from broker.controller.context import Replica
from broker.controller.partition_machine import PartitionStateMachine
from broker.controller.replica_machine import ReplicaStateMachine
from broker.controller.states import ReplicaState
from broker.controller.term import Term
from broker.metadata.znodes.admin import delete_topic_path
from broker.metadata.znodes.configs import ConfigEntityZnode
from broker.metadata.znodes.topics import TopicZnode

logger = logging.getLogger(__name__)


class TopicDeletion:
    """The deletions of one controller term."""

    def __init__(
        self, term: Term, partitions: PartitionStateMachine, replicas: ReplicaStateMachine
    ) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions
        self._replicas = replicas
        self._waiting: dict[str, asyncio.Future[None]] = {}
        """Told when a topic is gone, or when that has to wait for something."""

    async def start(self, wanted: Collection[str]) -> None:
        """Take up the deletions that were asked for before this controller was elected."""
        if not self._is_enabled:
            await self.forget(wanted)
            return
        self._context.topics_to_delete |= set(wanted)
        for topic in wanted:
            if any(
                not self._context.is_online(replica.broker_id, replica.partition)
                for replica in self._context.replicas_of_topic(topic)
            ):
                self._context.ineligible_topics.add(topic)
        self.hold({partition.topic for partition in self._context.reassigning})

    @property
    def _is_enabled(self) -> bool:
        return self._term.configs.broker.delete_topic_enable

    async def enqueue(self, topics: Collection[str]) -> None:
        """Begin to delete topics."""
        self._context.topics_to_delete |= set(topics)
        self.hold({partition.topic for partition in self._context.reassigning} & set(topics))
        await self.go_on()

    async def forget(self, topics: Iterable[str]) -> None:
        """Take back what was asked for: there is no such topic, or nothing is to be deleted."""
        await self._term.store.delete([delete_topic_path(topic) for topic in topics])

    def hold(self, topics: Collection[str]) -> None:
        """Let the deletion of topics wait until `resume`."""
        held = self._context.topics_to_delete & set(topics)
        if held:
            logger.info("deletion has to wait topics=%s", ",".join(sorted(held)))
        self._context.ineligible_topics |= held
        for topic in held:
            self._tell(topic)

    async def resume(self, topics: Collection[str]) -> None:
        """Try again to delete topics that had to wait."""
        resumed = self._context.topics_to_delete & set(topics)
        if resumed:
            self._context.ineligible_topics -= resumed
            await self.go_on()

    async def succeeded(self, replicas: Iterable[Replica]) -> None:
        """Note that brokers have deleted replicas; a topic that has no more is gone."""
        self._replicas.complete_deletion(self._wanted(replicas))
        await self.go_on()

    async def failed(self, replicas: Iterable[Replica]) -> None:
        """Note that replicas cannot be deleted now; their topics have to wait."""
        wanted = self._wanted(replicas)
        if wanted:
            running = (ReplicaState.NEW, ReplicaState.ONLINE)  # while a reassignment went on
            await self._replicas.take_offline(
                [replica for replica in wanted if self._context.state_of(replica) in running]
            )
            self._replicas.fail_deletion(wanted)
            self.hold({replica.partition.topic for replica in wanted})
            await self.go_on()

    def _wanted(self, replicas: Iterable[Replica]) -> list[Replica]:
        return [r for r in replicas if self._context.is_being_deleted(r.partition.topic)]

    async def go_on(self) -> None:
        """Do the next step for every topic for which there is one."""
        begun: list[str] = []
        for topic in sorted(self._context.topics_to_delete):
            states = {self._context.state_of(r) for r in self._context.replicas_of_topic(topic)}
            if states <= {ReplicaState.DELETION_SUCCESSFUL}:
                await self._complete(topic)
                continue
            is_under_way = ReplicaState.DELETION_STARTED in states
            if not is_under_way and ReplicaState.DELETION_INELIGIBLE in states:
                failed = self._context.replicas_in(topic, ReplicaState.DELETION_INELIGIBLE)
                await self._replicas.take_offline(failed)
            if not is_under_way and topic not in self._context.ineligible_topics:
                begun.append(topic)
        if begun:
            await self._begin(begun)

    async def _begin(self, topics: list[str]) -> None:
        context = self._context
        logger.info("deletion begins topics=%s", ",".join(topics))
        unseen = set(topics) - context.topics_with_deletion_started
        names = [name for topic in unseen for name in context.partitions_of(topic)]
        self._partitions.take_offline(names)
        self._partitions.remove(names)
        context.topics_with_deletion_started |= unseen
        self._term.send_metadata(name for topic in topics for name in context.partitions_of(topic))
        await self._stop_and_delete(topics)

    async def _stop_and_delete(self, topics: list[str]) -> None:
        alive, dead = [], []
        for replica in (r for topic in topics for r in self._context.replicas_of_topic(topic)):
            if not self._context.is_online(replica.broker_id, replica.partition):
                dead.append(replica)
            elif self._context.state_of(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                alive.append(replica)
        self._replicas.fail_deletion(
            [r for r in dead if self._context.state_of(r) is not ReplicaState.DELETION_INELIGIBLE]
        )
        await self._replicas.take_offline(alive)
        self._replicas.start_deletion(alive)
        self.hold({replica.partition.topic for replica in dead})

    async def _complete(self, topic: str) -> None:
        """Remove what is left of a topic: its nodes, the note that it shall go, its settings."""
        store = self._term.store
        self._replicas.remove(self._context.replicas_in(topic, ReplicaState.DELETION_SUCCESSFUL))
        self._context.remove_topic(topic)
        await store.delete_branch(TopicZnode.path(topic))
        await store.delete(
            [ConfigEntityZnode.path(EntityType.TOPIC, topic), delete_topic_path(topic)]
        )
        logger.info("deletion is complete topic=%s", topic)
        self._tell(topic)

    def when_settled(self, topic: str) -> asyncio.Future[None]:
        """Done when the topic is gone, or when its deletion has to wait."""
        if not self._context.is_being_deleted(topic) or topic in self._context.ineligible_topics:
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            settled.set_result(None)
            return settled
        if topic not in self._waiting:
            self._waiting[topic] = asyncio.get_running_loop().create_future()
        return self._waiting[topic]

    def _tell(self, topic: str) -> None:
        settled = self._waiting.pop(topic, None)
        if settled is not None and not settled.done():
            settled.set_result(None)

    def close(self) -> None:
        """The next controller goes on; nobody waits here any more."""
        for topic in list(self._waiting):
            self._tell(topic)
