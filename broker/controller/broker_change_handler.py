"""Events of brokers: startup, failure, new endpoints, failed log directories, controlled shutdown.

What happens, in Kafka's words:

    broker startup     it is sent all metadata, and LeaderAndIsr for its replicas; partitions that
                       waited for it elect a leader; reassignments and deletions that waited for it
                       continue
    broker failure     its partitions go offline and elect another leader; its replicas leave the
                       ISRs
    bounced broker     registered with a new epoch while the old one was still known: failure, then
                       startup, so that it gets all its requests again
    log dir failure    the broker leaves a notification, is sent LeaderAndIsr for all its replicas,
                       and answers KAFKA_STORAGE_ERROR for those that are offline: these fail
"""

import logging
from collections.abc import Collection, Iterable

from broker.controller.controller_broker_request_batch import endpoint_of
from broker.controller.controller_context import LiveBroker, Replica
from broker.controller.controller_services import ControllerServices
from broker.controller.partition_leader_election import ElectionStrategy
from broker.controller.partition_state_machine import PartitionStateMachine
from broker.controller.reassignment_manager import ReassignmentManager
from broker.controller.replica_assignment import target_of
from broker.controller.replica_state_machine import ReplicaStateMachine
from broker.controller.topic_deletion_manager import TopicDeletionManager
from broker.errors import ApiError, ErrorCode
from broker.metadata.store import join
from broker.metadata.znodes.notifications import LogDirEventZnode
from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.protocol.messages.leader_and_isr import LeaderAndIsrResponse

logger = logging.getLogger(__name__)

ANY_EPOCH = -1
"""Sent by brokers from before KIP-380, which do not know their epoch."""


class BrokerChangeHandler:
    """Processes the events of brokers, in one controller epoch."""

    def __init__(
        self,
        services: ControllerServices,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        reassigner: ReassignmentManager,
        deletion: TopicDeletionManager,
    ) -> None:
        self._services = services
        self._context = services.context
        self._partitions = partitions
        self._replicas = replicas
        self._reassigner = reassigner
        self._deletion = deletion

    def connect(self, broker_ids: Iterable[int]) -> None:
        """Open channels to brokers, on the control plane listener."""
        listener_name = self._services.configs.broker.control_plane_listener
        for broker_id in broker_ids:
            broker = self._context.brokers[broker_id]
            endpoint = endpoint_of(broker, listener_name)
            node = Node(broker_id, endpoint.host, endpoint.port) if endpoint else None
            self._services.channels.add(broker_id, node)

    # Startup and failure

    async def process_broker_change(self) -> None:
        """Compare the registered brokers with the known ones, and process the differences."""
        now = await self._services.store.brokers()
        known = self._context.brokers
        new = now.keys() - known.keys()
        dead = known.keys() - now.keys()
        bounced = {
            broker_id
            for broker_id in now.keys() & known.keys()
            if now[broker_id].broker_epoch != known[broker_id].broker_epoch
        }
        if new or dead or bounced:
            logger.info(
                "Broker change new=%s deleted=%s bounced=%s live=%s",
                sorted(new),
                sorted(dead),
                sorted(bounced),
                sorted(now),
            )
        if new:
            await self._on_broker_startup(new, now)
        for gone in (dead, bounced):
            if gone:
                await self._on_broker_failure(gone)
        if bounced:
            await self._on_broker_startup(bounced, now)

    async def _on_broker_startup(
        self, broker_ids: Collection[int], now: dict[int, LiveBroker]
    ) -> None:
        """Send new brokers all metadata, and start their replicas."""
        logger.info("New broker startup brokers=%s", sorted(broker_ids))
        context = self._context
        others = set(context.brokers)
        for broker_id in sorted(broker_ids):
            context.brokers[broker_id] = now[broker_id]
            context.offline_dirs.pop(broker_id, None)
        self.connect(broker_ids)
        # The others need the new brokers' addresses before LeaderAndIsr names one as a leader; the
        # new ones know nothing and get everything.
        self._services.send_metadata([], others)
        self._services.send_metadata(self._known_partitions(), broker_ids)
        replicas = context.replicas_on(broker_ids)
        self._replicas.start_online(
            r for r in replicas if not context.is_being_deleted(r.partition.topic)
        )
        await self._partitions.elect_missing()
        await self._reassigner.resume(
            lambda assignment: not set(target_of(assignment)).isdisjoint(broker_ids)
        )
        await self._deletion.resume_deletion_for({replica.partition.topic for replica in replicas})

    def _known_partitions(self) -> Iterable[TopicPartition]:
        context = self._context
        return [name for name in context.partitions() if not context.is_being_deleted(name.topic)]

    async def _on_broker_failure(self, broker_ids: Collection[int]) -> None:
        logger.info("Broker failure brokers=%s", sorted(broker_ids))
        for broker_id in broker_ids:
            self._context.brokers.pop(broker_id, None)
            self._context.shutting_down.discard(broker_id)
            self._context.offline_dirs.pop(broker_id, None)
            self._services.channels.remove(broker_id)
        await self._on_replicas_become_offline(self._context.replicas_on(broker_ids))

    async def _on_replicas_become_offline(self, replicas: Collection[Replica]) -> None:
        """Elect other leaders for what these replicas led, and remove them from the ISRs."""
        context = self._context
        unled = [
            name
            for name, state in context.leaderships.items()
            if not context.is_online(state.leader, name)
            and not context.is_being_deleted(name.topic)
        ]
        # Leaders first: clients of these partitions wait for one, while a dead member of an ISR
        # costs nothing until a producer with acks=all has waited for its removal.
        self._partitions.take_offline(unled)
        elected = await self._partitions.elect_missing()
        going = [r for r in replicas if context.is_being_deleted(r.partition.topic)]
        staying = [r for r in replicas if not context.is_being_deleted(r.partition.topic)]
        await self._replicas.take_offline(staying)
        await self._deletion.fail_replica_deletion(going)
        if not staying and not any(elected.values()):
            # No request of the above contains the live brokers, so that these are sent alone.
            self._services.send_metadata([])

    async def process_broker_modification(self, broker_id: int) -> None:
        """Send every broker the endpoints of a broker that has changed them."""
        now = (await self._services.store.brokers()).get(broker_id)
        known = self._context.brokers.get(broker_id)
        if now is None or known is None or now.broker_epoch != known.broker_epoch:
            return  # it has started or failed: another event
        if now.registration.endpoints != known.registration.endpoints:
            logger.info("Updated broker endpoints broker=%s", broker_id)
            self._context.brokers[broker_id] = now
            self._services.send_metadata([])

    # Log directories

    async def process_log_dir_event_notification(self) -> None:
        """Query the brokers that have lost a log directory for the replicas that are offline."""
        store, parent = self._services.store, LogDirEventZnode.PARENT
        paths = {name: join(parent, name) for name in await store.children(parent)}
        notes = await store.get_all(paths)
        brokers = {LogDirEventZnode.decode(note.data) for note in notes.values()}
        if brokers:
            logger.info("Log directory failure brokers=%s", sorted(brokers))
            self._replicas.start_online(
                replica
                for replica in self._context.replicas_on(brokers)
                if not self._context.is_being_deleted(replica.partition.topic)
            )
        await store.delete(paths.values())

    async def process_leader_and_isr_response(
        self, broker_id: int, response: LeaderAndIsrResponse
    ) -> None:
        """Update the replicas whose log directory has failed on this broker."""
        if response.error_code:
            code = ErrorCode.name_of(response.error_code)
            logger.error("Broker rejected LeaderAndIsr broker=%s error=%s", broker_id, code)
            return
        known = self._context.offline_dirs.get(broker_id, set())
        offline = set(known)
        for topic in response.topics:
            name = self._context.topic_names.get(topic.topic_id)
            if name is None:
                continue
            for partition in topic.partition_errors:
                place = TopicPartition(name, partition.partition_index)
                if partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                    offline.add(place)
                elif not partition.error_code:
                    offline.discard(place)
        self._context.offline_dirs[broker_id] = offline
        if new := offline - known:
            logger.info(
                "Replicas became offline broker=%s partitions=%s",
                broker_id,
                ",".join(map(str, sorted(new))),
            )
            await self._on_replicas_become_offline([Replica(name, broker_id) for name in new])

    # Controlled shutdown

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move leadership away from a broker; returns the partitions that it still leads.

        These have no other replica in sync. The broker repeats its request until none is left or it
        has tried controlled.shutdown.max.retries times.
        """
        context = self._context
        live = context.brokers.get(broker_id)
        if live is None:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist.")
        if broker_epoch != ANY_EPOCH and broker_epoch < live.broker_epoch:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        logger.info("Shutting down broker=%s", broker_id)
        # From here on the broker counts as offline for elections and as ineligible for ISRs, so
        # that no leader can add it again before it is gone.
        context.shutting_down.add(broker_id)
        led, followed = self._to_hand_over(broker_id)
        await self._partitions.bring_online(led, ElectionStrategy.CONTROLLED_SHUTDOWN)
        # The replicas that follow are stopped now, so that they do not rejoin an ISR before the
        # broker is gone.
        await self._replicas.take_offline([Replica(name, broker_id) for name in followed])
        return [
            name
            for name in led
            if name in context.leaderships and context.leaderships[name].leader == broker_id
        ]

    def _to_hand_over(self, broker_id: int) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """What the broker leads and what it follows, of the partitions with other replicas."""
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for name, _ in self._context.replicas_on({broker_id}):
            known = self._context.leaderships.get(name)
            is_alone = len(self._context.assignment(name).replicas) < 2
            if known is None or is_alone or self._context.is_being_deleted(name.topic):
                continue
            (led if known.leader == broker_id else followed).append(name)
        return led, followed
