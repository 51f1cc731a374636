"""Brokers come, go, bounce, move, lose log directories and shut down: what follows from that."""

import logging
from collections.abc import Collection, Iterable

from broker.controller.context import LiveBroker, Replica
from broker.controller.deletion import TopicDeletion
from broker.controller.election import ElectionStrategy
from broker.controller.partition_machine import PartitionStateMachine
from broker.controller.reassigning import Reassigner
from broker.controller.reassignment import target_of
from broker.controller.replica_machine import ReplicaStateMachine
from broker.controller.request_batch import endpoint_of
from broker.controller.term import Term
from broker.errors import ApiError, ErrorCode
from broker.metadata.store import join
from broker.metadata.znodes.notifications import LogDirEventZnode
from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.protocol.messages.leader_and_isr import LeaderAndIsrResponse

logger = logging.getLogger(__name__)

ANY_EPOCH = -1
"""Brokers from before KIP-380 do not know their epoch."""


class Brokers:
    """The brokers of one controller term."""

    def __init__(
        self,
        term: Term,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        reassigner: Reassigner,
        deletion: TopicDeletion,
    ) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions
        self._replicas = replicas
        self._reassigner = reassigner
        self._deletion = deletion

    def connect(self, broker_ids: Iterable[int]) -> None:
        """Open the ways to brokers, on the listener that brokers use among themselves."""
        for broker_id in broker_ids:
            broker = self._context.brokers[broker_id]
            endpoint = endpoint_of(broker, self._term.sender.listener_name)
            node = Node(broker_id, endpoint.host, endpoint.port) if endpoint else None
            self._term.channels.add(broker_id, node)

    # Coming and going

    async def changed(self) -> None:
        """Find out who has come and gone; a broker with a new epoch has done both."""
        now = await self._term.store.brokers()
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
                "brokers new=%s dead=%s bounced=%s live=%s",
                sorted(new),
                sorted(dead),
                sorted(bounced),
                sorted(now),
            )
        if new:
            await self._came(new, now)
        for gone in (dead, bounced):
            if gone:
                await self._went(gone)
        if bounced:
            await self._came(bounced, now)

    async def _came(self, broker_ids: Collection[int], now: dict[int, LiveBroker]) -> None:
        """Let new brokers know everything, and their replicas do something."""
        context = self._context
        others = set(context.brokers)
        for broker_id in sorted(broker_ids):
            context.brokers[broker_id] = now[broker_id]
            context.offline_dirs.pop(broker_id, None)
        self.connect(broker_ids)
        self._term.send_metadata([], others)
        self._term.send_metadata(self._known_partitions(), broker_ids)
        replicas = context.replicas_on(broker_ids)
        self._replicas.start_online(
            r for r in replicas if not context.is_being_deleted(r.partition.topic)
        )
        await self._partitions.elect_missing()
        await self._reassigner.resume(
            lambda assignment: not set(target_of(assignment)).isdisjoint(broker_ids)
        )
        await self._deletion.resume({replica.partition.topic for replica in replicas})

    def _known_partitions(self) -> Iterable[TopicPartition]:
        context = self._context
        return [name for name in context.partitions() if not context.is_being_deleted(name.topic)]

    async def _went(self, broker_ids: Collection[int]) -> None:
        for broker_id in broker_ids:
            self._context.brokers.pop(broker_id, None)
            self._context.shutting_down.discard(broker_id)
            self._context.offline_dirs.pop(broker_id, None)
            self._term.channels.remove(broker_id)
        await self._replicas_lost(self._context.replicas_on(broker_ids))

    async def _replicas_lost(self, replicas: Collection[Replica]) -> None:
        """Let others lead what these led, and take them out of the ISRs."""
        context = self._context
        unled = [
            name
            for name, state in context.leaderships.items()
            if not context.is_online(state.leader, name)
            and not context.is_being_deleted(name.topic)
        ]
        self._partitions.take_offline(unled)
        elected = await self._partitions.elect_missing()
        going = [r for r in replicas if context.is_being_deleted(r.partition.topic)]
        staying = [r for r in replicas if not context.is_being_deleted(r.partition.topic)]
        await self._replicas.take_offline(staying)
        await self._deletion.failed(going)
        if not staying and not any(elected.values()):
            # Nothing of the above has told the others who is alive.
            self._term.send_metadata([])

    async def modified(self, broker_id: int) -> None:
        """See whether a broker has other endpoints; everybody must know them."""
        now = (await self._term.store.brokers()).get(broker_id)
        known = self._context.brokers.get(broker_id)
        if now is None or known is None or now.broker_epoch != known.broker_epoch:
            return  # it has come or gone: another event
        if now.registration.endpoints != known.registration.endpoints:
            logger.info("endpoints changed broker=%s", broker_id)
            self._context.brokers[broker_id] = now
            self._term.send_metadata([])

    # Log directories

    async def log_dirs_failed(self) -> None:
        """Ask the brokers that have lost a log directory which replicas that concerns."""
        store, parent = self._term.store, LogDirEventZnode.PARENT
        paths = {name: join(parent, name) for name in await store.children(parent)}
        notes = await store.get_all(paths)
        brokers = {LogDirEventZnode.decode(note.data) for note in notes.values()}
        if brokers:
            logger.info("log directories have failed brokers=%s", sorted(brokers))
            self._replicas.start_online(
                replica
                for replica in self._context.replicas_on(brokers)
                if not self._context.is_being_deleted(replica.partition.topic)
            )
        await store.delete(paths.values())

    async def answered(self, broker_id: int, response: LeaderAndIsrResponse) -> None:
        """Take note of the replicas whose log directory has failed, and of those that are well."""
        if response.error_code:
            code = ErrorCode.name_of(response.error_code)
            logger.error("LeaderAndIsr was refused broker=%s code=%s", broker_id, code)
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
            logger.info("replicas are offline broker=%s partitions=%s", broker_id, sorted(new))
            await self._replicas_lost([Replica(name, broker_id) for name in new])

    # Shutting down

    async def shut_down(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move leadership away from a broker that is about to stop; gives what it still leads."""
        context = self._context
        live = context.brokers.get(broker_id)
        if live is None:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist.")
        if broker_epoch != ANY_EPOCH and broker_epoch < live.broker_epoch:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        logger.info("shutting down broker=%s", broker_id)
        context.shutting_down.add(broker_id)
        led, followed = self._to_hand_over(broker_id)
        await self._partitions.bring_online(led, ElectionStrategy.CONTROLLED_SHUTDOWN)
        # Followers are stopped first, so that they do not come in sync again.
        await self._replicas.take_offline([Replica(name, broker_id) for name in followed])
        return [
            name
            for name in led
            if name in context.leaderships and context.leaderships[name].leader == broker_id
        ]

    def _to_hand_over(self, broker_id: int) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """The partitions with other replicas that the broker leads, and that it follows."""
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for name, _ in self._context.replicas_on({broker_id}):
            known = self._context.leaderships.get(name)
            is_alone = len(self._context.assignment(name).replicas) < 2
            if known is None or is_alone or self._context.is_being_deleted(name.topic):
                continue
            (led if known.leader == broker_id else followed).append(name)
        return led, followed
