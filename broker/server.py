"""Builds every part of a broker, starts and stops them in order: the only wiring.

    store → identity → settings → logs → replicas → controller → coordinators → registration →
    election → listeners

Each needs those before it. Stopping goes the other way round; before it begins, a broker that is
not alone hands over what it leads.
"""

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path

from broker.api.context import Services
from broker.api.dispatch import Dispatcher
from broker.api.fetch_session import FetchSessionCache
from broker.background import Background
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.controlled import ControlledBroker
from broker.controlled_shutdown import hand_over
from broker.controller.auto_creation import AutoTopicCreation
from broker.controller.controller import Controller
from broker.controller.topic_requests import creating_here, creating_topics
from broker.coordination import build_coordinators, follow_leadership
from broker.group.offset_nodes import OffsetNodes
from broker.identity import (
    Identity,
    check_broker_id,
    check_cluster_id,
    stored_broker_id,
    stored_cluster_id,
    write_identity,
)
from broker.inter_broker import InterBroker
from broker.log.config import CleanerConfig, LogConfig, ProducerStateConfig
from broker.log.environment import LogEnvironment
from broker.log.manager import LogManager
from broker.membership import (
    Membership,
    generate_broker_id,
    make_cluster_id,
    make_persistent_paths,
    registered_cluster_id,
)
from broker.metadata.config_store import ZnodeConfigStore
from broker.metadata.config_watch import ConfigWatch
from broker.metadata.errors import StoreError
from broker.metadata.session import SessionState
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.brokers import BrokerIdZnode, Endpoint
from broker.metadata.znodes.notifications import LogDirEventZnode
from broker.metadata_cache import MetadataCache
from broker.model import BrokerEpoch, TopicPartition
from broker.net.connection import Answer, Peer
from broker.net.listener import Limits, Listener
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from broker.replica.controller_requests import ControllerRequests
from broker.replica.manager import ReplicaCluster, ReplicaManager
from broker.replica.purgatory import Purgatory
from broker.stores import open_store

logger = logging.getLogger(__name__)

_GC_THRESHOLDS = (50_000, 50, 1_000)
"""Requests make few cycles; looking for them seldom keeps the pauses out of the latency."""

_EPOCHS_FLUSH_S = 2
"""How long a leader epoch may be known in memory only."""

_FETCH_SESSION_EVICTION_MS = 120_000
"""How long a fetch session may be idle before it gives way; Kafka has no setting for it either."""


_RESIGNING_S = 5.0
"""How long a controller that stops waits to say so; ZooKeeper may be away."""


class StartAbandoned(Exception):
    """The broker was told to stop while it was starting; it has left no trace."""


class Server:
    """One broker. `start` returns when it answers; `stop` when everything is closed."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self._clock = SystemClock()
        self._background = Background()
        self._broker_epoch = BrokerEpoch()
        self._loop = asyncio.get_running_loop()
        self.stopping = asyncio.Event()
        """Set when the broker shall stop: by a signal, or by itself when it cannot go on."""
        self.has_failed = False
        self.listeners: list[Listener] = []
        self.identity: Identity
        self._store: MetadataStore
        self._membership: Membership
        self._config_watch: ConfigWatch
        self._inter_broker: InterBroker
        self._logs: LogManager
        self._replicas: ReplicaManager
        self._services: Services
        self._dispatcher: Dispatcher

    async def start(self) -> None:
        """Start every part; OSError, IdentityError, StoreError, ApiError say what is in the way."""
        self._bind()  # first: an address that is taken shall not leave logs half opened
        self._logs = LogManager(
            self.config.log_directories,
            lambda topic: LogConfig.of(dynamic.topic(topic)),
            LogEnvironment(clock=self._clock, producer_state=_producer_state(self.config)),
            _cleaner(self.config),
            self._dir_failed,
        )
        await self._join_cluster()
        dynamic = await self._load_settings()
        await asyncio.to_thread(self._logs.startup)
        try:
            write_identity(self.identity, self._logs.online_dirs)
            self._build(dynamic)
            await self._join()
        except BaseException:
            # Nothing has happened yet: the next one shall find the logs as clean as we did.
            await asyncio.to_thread(self._logs.shutdown)
            await self._store.close()
            raise
        await self._open()
        self._start_background()
        gc.collect()
        gc.freeze()  # what lives now lives to the end: the collector need not look at it again
        gc.set_threshold(*_GC_THRESHOLDS)
        listening = ",".join(str(listener.address) for listener in self.listeners)
        logger.info("started broker.id=%s listeners=%s", self.identity.broker_id, listening)

    async def _join(self) -> None:
        """Register; that may have to wait for the end of a former session, and can be broken off.

        StartAbandoned when the broker shall stop before it has begun.
        """
        joining = asyncio.create_task(self._membership.join())
        stopping = asyncio.create_task(self.stopping.wait())
        await asyncio.wait([joining, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not joining.done():
            joining.cancel()
            await asyncio.wait([joining])
            raise StartAbandoned
        await joining

    async def stop(self) -> None:
        """Hand over what is led, close every connection, then the logs, then the store."""
        await self._maybe_hand_over()
        await self._membership.leave()
        await self._config_watch.stop()
        for listener in self.listeners:
            await listener.stop()
        await self._services.groups.stop()
        await self._services.transactions.stop()
        await self._services.auto_creation.stop()
        await self._background.stop()
        await self._replicas.close()
        await asyncio.to_thread(self._logs.shutdown)
        with suppress(TimeoutError):  # resigning is polite; the end of the session does the same
            async with asyncio.timeout(_RESIGNING_S):
                await self._services.controller.stop()
        self._inter_broker.close()
        await self._store.close()
        logger.info("stopped broker.id=%s", self.identity.broker_id)

    async def _maybe_hand_over(self) -> None:
        """Let others lead, if there can be others, and a store to write that to."""
        config = self._services.dynamic.broker
        if not (config.zookeeper_connect and config.controlled_shutdown_enable):
            return
        if self._store.session.state is not SessionState.CONNECTED:
            logger.warning("stopping without handing over: ZooKeeper cannot be reached")
            return
        request = ControlledShutdownRequest(
            broker_id=self.identity.broker_id, broker_epoch=self._broker_epoch.value
        )
        await hand_over(self._inter_broker.controller, request, config)

    def _dir_failed(self, path: Path) -> None:
        """A log directory is gone. Any thread."""
        self._loop.call_soon_threadsafe(self._on_dir_failed, path)

    def _on_dir_failed(self, path: Path) -> None:
        """Let the cluster know; without any directory the broker has nothing to serve."""
        if not self._logs.online_dirs:
            logger.critical("stopping, because the last log directory failed dir=%s", path)
            self.has_failed = True
            self.stopping.set()
        elif self._replicas.log_dir_failed(path):
            self._background.run(self._tell_of_failed_dir())

    async def _tell_of_failed_dir(self) -> None:
        """Leave a note for the controller, which then asks this broker what it still has."""
        note = LogDirEventZnode.encode(self.identity.broker_id)
        try:
            await self._store.create(LogDirEventZnode.PREFIX, note, sequence=True)
        except StoreError as error:
            logger.error("the controller was not told of the failed directory: %s", error)

    def _bind(self) -> None:
        limits = _limits(self.config)

        def answer(frame: memoryview, peer: Peer) -> Answer | Awaitable[Answer]:
            return self._dispatcher(frame, peer)

        for address in self.config.listeners:
            listener = Listener(address, limits, answer)
            try:
                listener.bind()
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else error
                raise OSError(f"cannot listen on {address}: {reason}") from error
            self.listeners.append(listener)

    async def _join_cluster(self) -> None:
        """Open the store and agree on who we are, before anything is written anywhere."""
        dirs = self._logs.online_dirs
        known = stored_cluster_id(dirs)
        self._store = await open_store(
            self.config, self._clock, belongs_to_cluster=known is not None
        )
        found = await registered_cluster_id(self._store)
        if found is not None or self.config.zookeeper_connect:
            check_cluster_id(found, dirs)
        broker_id: int | None = self.config.broker_id
        if broker_id is None or broker_id < 0:
            broker_id = stored_broker_id(dirs)
        if broker_id is not None:
            check_broker_id(broker_id, dirs)
        await make_persistent_paths(self._store)
        cluster_id = found or await make_cluster_id(self._store, known)
        if broker_id is None:
            broker_id = await generate_broker_id(self._store, self.config.reserved_broker_max_id)
        self.identity = Identity(broker_id, cluster_id)

    async def _load_settings(self) -> DynamicConfig:
        """What was changed while the broker ran, over what its file says."""
        dynamic = DynamicConfig(self.config, self.identity.broker_id)
        self._config_watch = ConfigWatch(self._store, dynamic, self._clock)
        await self._config_watch.start()
        return dynamic

    def _build(self, dynamic: DynamicConfig) -> None:
        """Every part above the logs, none of them started."""
        config, broker_id = self.config, self.identity.broker_id
        metadata = MetadataCache(self.identity.cluster_id)
        links = self._inter_broker = InterBroker(config, metadata, broker_id)
        self._replicas = ReplicaManager(
            broker_id,
            self._logs,
            dynamic,
            ReplicaCluster(
                metadata,
                self._broker_epoch,
                links.controller,
                links.connect,
                links.node,
                self._clock,
            ),
        )
        self._replicas.load_high_watermarks()
        controlled = ControlledBroker(ControllerRequests(self._replicas), self._config_watch)
        controller = self._build_controller(dynamic, controlled)
        coordination = build_coordinators(
            config, self._replicas, links, self._broker_epoch, self._clock
        )
        follow_leadership(coordination, self._replicas, self._background)
        purgatory = Purgatory()
        self._services = Services(
            config=config,
            dynamic=dynamic,
            config_store=ZnodeConfigStore(self._store),
            metadata=metadata,
            replicas=self._replicas,
            controller_requests=controlled,
            purgatory=purgatory,
            fetch_sessions=FetchSessionCache(
                config.max_incremental_fetch_session_cache_slots,
                _FETCH_SESSION_EVICTION_MS,
                purgatory,
            ),
            controller=controller,
            auto_creation=AutoTopicCreation(
                dynamic,
                creating_topics(controller, links.controller),
                is_alone=not config.zookeeper_connect,
            ),
            groups=coordination.groups,
            offset_nodes=OffsetNodes(self._store),
            transactions=coordination.transactions,
            markers=coordination.markers,
            verifier=coordination.verifier,
            clock=self._clock,
        )
        self._replicas.on_deleted = self._on_deleted
        self._dispatcher = Dispatcher(self._services)

    def _build_controller(self, dynamic: DynamicConfig, controlled: ControlledBroker) -> Controller:
        """The controller, and what others need to know of it and it of them."""
        links = self._inter_broker
        controller = Controller(self._store, dynamic, controlled, links.connect, self._clock)
        links.is_controller = lambda: controller.is_active
        links.controller.local = {
            ApiKey.ALTER_PARTITION: controller.alter_partition,
            ApiKey.CONTROLLED_SHUTDOWN: controller.controlled_shutdown,
            ApiKey.ALLOCATE_PRODUCER_IDS: controller.allocate_producer_ids,
            ApiKey.CREATE_TOPICS: creating_here(controller),
        }
        self._membership = Membership(
            self._store,
            self._registration,
            self._broker_epoch,
            self.config.zookeeper_session_timeout_ms,
        )
        self._membership.on_rejoined = controller.rejoined
        dynamic.on_broker_change(self._maybe_register_anew)
        return controller

    def _maybe_register_anew(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """Let the cluster know when clients shall find this broker elsewhere."""
        if new.advertised_listeners != old.advertised_listeners:
            self._background.run(self._membership.update())

    def _on_deleted(self, names: list[TopicPartition]) -> None:
        self._config_watch.on_topics_deleted({name.topic for name in names})
        self._background.run(self._services.groups.offsets.on_partitions_deleted(names))

    async def _open(self) -> None:
        """Stand for election, lead what there is to lead, and only then let clients in."""
        services = self._services
        services.groups.start()
        await services.controller.start()
        services.transactions.start()
        for listener in self.listeners:
            await listener.start()

    def _registration(self) -> BrokerIdZnode:
        """This broker by its listeners: as advertised, else as it listens."""
        bound = {listener.address.name: listener.address for listener in self.listeners}
        config = self._services.dynamic.broker
        advertised = {address.name: address for address in config.advertised_listeners}
        return BrokerIdZnode(
            self.identity.broker_id,
            tuple(
                Endpoint(
                    name,
                    address.host or socket.gethostname(),
                    address.port or bound[name].port,
                    config.security_protocol(name) or name,
                )
                for name, address in (advertised or bound).items()
            ),
            self.config.broker_rack,
            self._clock.now_ms(),
        )

    def _start_background(self) -> None:
        config, every, logs = self.config, self._background.every, self._logs
        every(config.log_retention_check_interval_ms / 1000, logs.delete_expired)
        every(config.log_flush_scheduler_interval_ms / 1000, logs.flush_dirty)
        every(config.log_cleaner_backoff_ms / 1000, logs.clean)
        every(60, logs.release_idle_files)
        every(_EPOCHS_FLUSH_S, logs.flush_leader_epochs)
        every(config.producer_id_expiration_check_interval_ms / 1000, logs.remove_expired_producers)
        every(
            config.log_flush_offset_checkpoint_interval_ms / 1000, logs.checkpoint_recovery_points
        )
        every(
            config.log_flush_start_offset_checkpoint_interval_ms / 1000,
            logs.checkpoint_log_start_offsets,
        )
        every(
            config.replica_high_watermark_checkpoint_interval_ms / 1000,
            self._replicas.checkpoint_high_watermarks,
        )
        every(config.replica_lag_time_max_ms / 2000, self._replicas.shrink_isrs, in_thread=False)


def _limits(config: BrokerConfig) -> Limits:
    return Limits(
        request_max_bytes=config.socket_request_max_bytes,
        max_idle_ms=config.connections_max_idle_ms,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        per_ip_overrides=dict(config.max_connections_per_ip_overrides),
        backlog=config.socket_listen_backlog_size,
        send_buffer_bytes=config.send_buffer_bytes,
        receive_buffer_bytes=config.receive_buffer_bytes,
    )


def _producer_state(config: BrokerConfig) -> ProducerStateConfig:
    return ProducerStateConfig(
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        max_transaction_timeout_ms=config.transaction_max_timeout_ms,
        verify_transactions=config.transaction_partition_verification_enable,
    )


def _cleaner(config: BrokerConfig) -> CleanerConfig:
    return CleanerConfig(
        enable=config.log_cleaner_enable,
        dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
        io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        io_buffer_size=config.log_cleaner_io_buffer_size,
    )
