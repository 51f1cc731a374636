"""Kafka's TopicDeletionManager.

A topic that is being deleted has a node in /admin/delete_topics until nothing is left of it, so
that the next controller continues where this one stopped. The steps:

    1. its partitions go OFFLINE and NON_EXISTENT; UpdateMetadata lets the brokers remove them
    2. its replicas are stopped (OFFLINE), then deleted (DELETION_STARTED)
    3. when all brokers have answered (DELETION_SUCCESSFUL), its nodes and configs are deleted

While a replica cannot be deleted (its broker is dead, its log directory has failed, or it is being
reassigned) the topic is ineligible: its deletion stops, and is started again when that has changed.

The progress is kept in replica states and is not stored. A new controller starts every deletion
again from step 1; brokers answer StopReplica for a replica that they do not have with success.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable

from broker.config.dynamic import EntityType
from broker.controller.controller_context import Replica
from broker.controller.controller_services import ControllerServices
from broker.controller.partition_state_machine import PartitionStateMachine
from broker.controller.replica_state_machine import ReplicaStateMachine
from broker.controller.states import ReplicaState
from broker.metadata.znodes.admin import delete_topic_path
from broker.metadata.znodes.configs import ConfigEntityZnode
from broker.metadata.znodes.topics import TopicZnode

logger = logging.getLogger(__name__)


class TopicDeletionManager:
    """Deletes topics, in one controller epoch.

    Field `context.topics_to_delete`: requested and not complete. Field `context.ineligible_topics`:
    those that must wait. Invariant: ineligible topics are among the topics to delete.
    """

    def __init__(
        self,
        services: ControllerServices,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
    ) -> None:
        self._services = services
        self._context = services.context
        self._partitions = partitions
        self._replicas = replicas
        self._waiting: dict[str, asyncio.Future[None]] = {}
        """By topic, a future that completes when the topic is gone or its deletion must wait."""

    async def init(self, wanted: Collection[str]) -> None:
        """Take over the deletions that were requested before this controller was elected.

        Runs before replica states are derived, so it looks at brokers and log directories instead.
        With delete.topic.enable=false the requests are dropped, as in Kafka: they would otherwise
        take effect when the setting is changed.
        """
        if not self._is_enabled:
            await self.remove_requests(wanted)
            return
        self._context.topics_to_delete |= set(wanted)
        for topic in wanted:
            if any(
                not self._context.is_online(replica.broker_id, replica.partition)
                for replica in self._context.replicas_of_topic(topic)
            ):
                self._context.ineligible_topics.add(topic)
        self.mark_ineligible({partition.topic for partition in self._context.reassigning})

    @property
    def _is_enabled(self) -> bool:
        return self._services.configs.broker.delete_topic_enable

    async def enqueue_topics_for_deletion(self, topics: Collection[str]) -> None:
        """Start to delete topics.

        The caller has found their nodes in /admin/delete_topics. From here on the topics count as
        being deleted: they get no leaders, new partitions or reassignments.
        """
        self._context.topics_to_delete |= set(topics)
        self.mark_ineligible(
            {partition.topic for partition in self._context.reassigning} & set(topics)
        )
        await self.resume_deletions()

    async def remove_requests(self, topics: Iterable[str]) -> None:
        """Remove requests from the store: the topics are unknown, or deletion is disabled."""
        await self._services.store.delete([delete_topic_path(topic) for topic in topics])

    def mark_ineligible(self, topics: Collection[str]) -> None:
        """Stop the deletion of topics until `resume_deletion_for`.

        Replicas that are being deleted are not called back: their responses are still recorded, and
        nothing new is started. Clients that wait for the deletion are answered now, because it may
        take until a dead broker returns.
        """
        held = self._context.topics_to_delete & set(topics)
        if held:
            logger.info("Halted deletion of topics=%s", ",".join(sorted(held)))
        self._context.ineligible_topics |= held
        for topic in held:
            self._notify(topic)

    async def resume_deletion_for(self, topics: Collection[str]) -> None:
        """Start the deletion of ineligible topics again.

        Called when a broker has started or a reassignment is complete. If there is another reason
        to wait, the next step finds it and halts the deletion again.
        """
        resumed = self._context.topics_to_delete & set(topics)
        if resumed:
            self._context.ineligible_topics -= resumed
            await self.resume_deletions()

    async def complete_replica_deletion(self, replicas: Iterable[Replica]) -> None:
        """Record that brokers have deleted replicas; a topic without replicas is removed.

        The files still exist, renamed, for `file.delete.delay.ms`; the topic can be created again
        meanwhile, because the directories have other names now.
        """
        self._replicas.complete_deletion(self._wanted(replicas))
        await self.resume_deletions()

    async def fail_replica_deletion(self, replicas: Iterable[Replica]) -> None:
        """Record that replicas cannot be deleted now; their topics become ineligible."""
        wanted = self._wanted(replicas)
        if wanted:
            running = (ReplicaState.NEW, ReplicaState.ONLINE)  # during a reassignment
            await self._replicas.take_offline(
                [replica for replica in wanted if self._context.state_of(replica) in running]
            )
            # After OFFLINE, from which alone this transition is allowed, besides DELETION_STARTED.
            self._replicas.fail_deletion(wanted)
            self.mark_ineligible({replica.partition.topic for replica in wanted})
            await self.resume_deletions()

    def _wanted(self, replicas: Iterable[Replica]) -> list[Replica]:
        """The replicas of topics that are being deleted; others were removed by a reassignment."""
        return [r for r in replicas if self._context.is_being_deleted(r.partition.topic)]

    async def resume_deletions(self) -> None:
        """Do the next step of every deletion that is not waiting for brokers.

        Called after everything that may allow a step. It can be called at any time: the replica
        states alone decide what is next. Kafka's resumeDeletions.
        """
        begun: list[str] = []
        for topic in sorted(self._context.topics_to_delete):
            states = {self._context.state_of(r) for r in self._context.replicas_of_topic(topic)}
            # Also true for a topic without replicas.
            if states <= {ReplicaState.DELETION_SUCCESSFUL}:
                await self._complete(topic)
                continue
            # While a broker has not answered yet, nothing more is sent for the topic; its response
            # calls this method again.
            is_under_way = ReplicaState.DELETION_STARTED in states
            # Failed replicas return to OFFLINE, from where the next attempt can delete them.
            if not is_under_way and ReplicaState.DELETION_INELIGIBLE in states:
                failed = self._context.replicas_in(topic, ReplicaState.DELETION_INELIGIBLE)
                await self._replicas.take_offline(failed)
            if not is_under_way and topic not in self._context.ineligible_topics:
                begun.append(topic)
        if begun:
            await self._begin(begun)

    async def _begin(self, topics: list[str]) -> None:
        """Steps 1 and 2 of the module, for all topics together: one request per broker and kind.

        Kafka's onTopicDeletion.
        """
        context = self._context
        logger.info("Starting deletion of topics=%s", ",".join(topics))
        # A deletion that is started again after it was halted has removed its partitions before.
        unseen = set(topics) - context.topics_with_deletion_started
        names = [name for topic in unseen for name in context.partitions_of(topic)]
        self._partitions.take_offline(names)
        self._partitions.remove(names)
        context.topics_with_deletion_started |= unseen
        # With leader -2 (Kafka's LeaderDuringDelete) for these partitions: brokers remove them from
        # their metadata cache, so that clients stop producing before the logs are deleted.
        self._services.send_metadata(
            name for topic in topics for name in context.partitions_of(topic)
        )
        await self._stop_and_delete(topics)

    async def _stop_and_delete(self, topics: list[str]) -> None:
        """Step 2: stop the replicas on live brokers, and let the brokers delete them.

        Kafka's onPartitionDeletion.
        """
        alive, dead = [], []
        for replica in (r for topic in topics for r in self._context.replicas_of_topic(topic)):
            if not self._context.is_online(replica.broker_id, replica.partition):
                dead.append(replica)
            elif self._context.state_of(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                alive.append(replica)
        # Replicas on dead brokers fail at once, which makes the topic ineligible; those on live
        # brokers are deleted nevertheless, so that only the dead ones remain for later.
        self._replicas.fail_deletion(
            [r for r in dead if self._context.state_of(r) is not ReplicaState.DELETION_INELIGIBLE]
        )
        # Two requests: a replica is stopped, so that it neither fetches nor is fetched from, before
        # it is deleted. The brokers process them in this order.
        await self._replicas.take_offline(alive)
        self._replicas.start_deletion(alive)
        self.mark_ineligible({replica.partition.topic for replica in dead})

    async def _complete(self, topic: str) -> None:
        """Remove what is left of a topic: its nodes, its configs, the request to delete it."""
        store = self._services.store
        # The request in /admin/delete_topics is deleted last: a controller that stops before that
        # leaves a request from which the next one finishes the deletion.
        self._replicas.remove(self._context.replicas_in(topic, ReplicaState.DELETION_SUCCESSFUL))
        self._context.remove_topic(topic)
        await store.delete_branch(TopicZnode.path(topic))
        await store.delete(
            [ConfigEntityZnode.path(EntityType.TOPIC, topic), delete_topic_path(topic)]
        )
        logger.info("Completed deletion of topic=%s", topic)
        self._notify(topic)

    def when_settled(self, topic: str) -> asyncio.Future[None]:
        """A future that is done when the topic is gone, or when its deletion must wait.

        DeleteTopics waits for it outside of the controller's queue. All callers that wait for the
        same topic share one future.
        """
        if not self._context.is_being_deleted(topic) or topic in self._context.ineligible_topics:
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            settled.set_result(None)
            return settled
        if topic not in self._waiting:
            self._waiting[topic] = asyncio.get_running_loop().create_future()
        return self._waiting[topic]

    def _notify(self, topic: str) -> None:
        """Complete the future of a topic. A caller may have cancelled it."""
        settled = self._waiting.pop(topic, None)
        if settled is not None and not settled.done():
            settled.set_result(None)

    def close(self) -> None:
        """Complete all futures: the next controller continues the deletions."""
        for topic in list(self._waiting):
            self._notify(topic)
