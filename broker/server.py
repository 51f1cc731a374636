"""Builds every part of a broker, starts and stops them in order: the only wiring.

    store → identity → settings → logs → replicas → controller → coordinators → listeners

Each needs those before it. Stopping goes the other way round.
"""

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Awaitable
from dataclasses import fields
from pathlib import Path

from broker.api.context import Services
from broker.api.dispatch import Dispatcher
from broker.api.fetch_session import FetchSessionCache
from broker.background import Background
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.controller.registration import become_controller
from broker.controller.topic_records import load_topics
from broker.controller.topics import TopicController
from broker.group.config import GroupConfig
from broker.group.coordinator import GroupCoordinator
from broker.group.offset_nodes import OffsetNodes
from broker.identity import (
    Identity,
    check_broker_id,
    check_cluster_id,
    stored_broker_id,
    stored_cluster_id,
    write_identity,
)
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
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.brokers import BrokerIdZnode, Endpoint
from broker.metadata_cache import BrokerEndpoint, MetadataCache
from broker.model import BrokerEpoch, TopicPartition
from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.net.connection import Answer, Peer
from broker.net.controller_channel import ControllerChannel
from broker.net.listener import Limits, Listener
from broker.net.peers import Peers
from broker.records.layout import Codec
from broker.replica.controller_requests import ControllerRequests
from broker.replica.internal_topic import InternalTopic
from broker.replica.manager import ReplicaCluster, ReplicaManager
from broker.stores import open_store
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from broker.txn.config import TxnConfig
from broker.txn.coordinator import TransactionCoordinator
from broker.txn.local_markers import LocalMarkers
from broker.txn.producer_ids import StoredProducerIdBlocks
from broker.txn.verification import verify_offset_commit

logger = logging.getLogger(__name__)

_GC_THRESHOLDS = (50_000, 50, 1_000)
"""Requests make few cycles; looking for them seldom keeps the pauses out of the latency."""

_FETCH_SESSION_EVICTION_MS = 120_000
"""How long a fetch session may be idle before it gives way; Kafka has no setting for it either."""


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
        self._logs: LogManager
        self._replicas: ReplicaManager
        self._services: Services
        self._dispatcher: Dispatcher

    async def start(self) -> None:
        """Start every part; OSError, IdentityError or StoreError name what is in the way."""
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
        write_identity(self.identity, self._logs.online_dirs)
        metadata = MetadataCache(self.identity.cluster_id, self.identity.broker_id)
        self._replicas = ReplicaManager(
            self.identity.broker_id, self._logs, dynamic, self._cluster_of_replicas(metadata)
        )
        self._replicas.load_high_watermarks()
        await self._open_listeners(dynamic, metadata)
        self._start_background()
        gc.collect()
        gc.freeze()  # what lives now lives to the end: the collector need not look at it again
        gc.set_threshold(*_GC_THRESHOLDS)
        listening = ",".join(str(listener.address) for listener in self.listeners)
        logger.info("started broker.id=%s listeners=%s", self.identity.broker_id, listening)

    async def stop(self) -> None:
        """Close every connection, then the logs, then the store."""
        await self._membership.leave()
        await self._config_watch.stop()
        for listener in self.listeners:
            await listener.stop()
        await self._services.groups.stop()
        await self._services.transactions.stop()
        await self._background.stop()
        await self._replicas.close()
        await asyncio.to_thread(self._logs.shutdown)
        await self._store.close()
        logger.info("stopped broker.id=%s", self.identity.broker_id)

    def _dir_failed(self, path: Path) -> None:
        """A log directory is gone; without any the broker has nothing to serve. Any thread."""
        if not self._logs.online_dirs:
            logger.critical("stopping, because the last log directory failed dir=%s", path)
            self.has_failed = True
            self._loop.call_soon_threadsafe(self.stopping.set)

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

    def _cluster_of_replicas(self, metadata: MetadataCache) -> ReplicaCluster:
        """How replicas reach the other brokers and the controller."""
        listener = self.config.inter_broker_listener

        def find_controller() -> Node | None:
            found = metadata.endpoint(metadata.controller_id, listener)
            return None if found is None else Node(found.broker_id, found.host, found.port)

        async def connect(node: Node) -> BrokerConnection:
            client_id = f"broker-{self.identity.broker_id}"
            return await open_connection(node, client_id, self.config.request_timeout_ms / 1000)

        peers = Peers(connect, self.config.request_timeout_ms)
        channel = ControllerChannel(find_controller, self.identity.broker_id, peers)
        return ReplicaCluster(metadata, self._broker_epoch, channel, connect, listener, self._clock)

    async def _open_listeners(self, dynamic: DynamicConfig, metadata: MetadataCache) -> None:
        """Register, take the controllership, lead, and only then let clients in."""
        broker_id = self.identity.broker_id
        metadata.brokers = self._endpoints()
        self._membership = Membership(
            self._store,
            lambda: self._registration(metadata),
            self._broker_epoch,
            self.config.zookeeper_session_timeout_ms,
        )
        await self._membership.join()
        epoch = await become_controller(self._store, broker_id, self._clock.now_ms())
        controller = TopicController(self._store, dynamic, metadata, self._replicas, epoch)
        groups, transactions, markers = self._coordinators(metadata)
        slots = self.config.max_incremental_fetch_session_cache_slots
        self._services = Services(
            config=self.config,
            dynamic=dynamic,
            config_store=ZnodeConfigStore(self._store),
            metadata=metadata,
            replicas=self._replicas,
            controller_requests=ControllerRequests(self._replicas),
            fetch_sessions=FetchSessionCache(slots, _FETCH_SESSION_EVICTION_MS),
            controller=controller,
            groups=groups,
            offset_nodes=OffsetNodes(self._store),
            transactions=transactions,
            markers=markers,
            clock=self._clock,
        )
        self._dispatcher = Dispatcher(self._services)
        await controller.start(await load_topics(self._store))
        transactions.start()  # all topics are known: a partition that is not, was deleted
        for listener in self.listeners:
            await listener.start()

    def _coordinators(
        self, metadata: MetadataCache
    ) -> tuple[GroupCoordinator, TransactionCoordinator, LocalMarkers]:
        """Both coordinators, which load what they keep as its partitions are led."""
        config, replicas = self.config, self._replicas
        offsets = InternalTopic(
            OFFSETS_TOPIC,
            config.offsets_topic_num_partitions,
            replicas,
            metadata,
            config.offsets_commit_timeout_ms,
        )
        is_verified = config.transaction_partition_verification_enable
        groups = GroupCoordinator(
            _group_config(config),
            offsets,
            self._clock,
            (lambda *commit: verify_offset_commit(transactions, *commit)) if is_verified else None,
        )
        states = InternalTopic(
            TRANSACTION_STATE_TOPIC,
            config.transaction_state_log_num_partitions,
            replicas,
            metadata,
        )
        markers = LocalMarkers(
            replicas,
            metadata,
            self._clock,
            config.request_timeout_ms,
            groups.registry.is_being_loaded,
            groups.offsets.on_transaction_completed,
        )
        producer_ids = StoredProducerIdBlocks(self._store, self.identity.broker_id)
        transactions = TransactionCoordinator(
            _txn_config(config), states, markers, producer_ids, self._clock
        )

        def on_leading(name: TopicPartition, leader_epoch: int) -> None:
            if name.topic == OFFSETS_TOPIC:
                self._background.run(groups.load(name.partition, leader_epoch))
            elif name.topic == TRANSACTION_STATE_TOPIC:
                transactions.on_election(name.partition, leader_epoch)

        def on_gone(name: TopicPartition) -> None:
            if name.topic == OFFSETS_TOPIC:
                groups.unload(name.partition, None)
            elif name.topic == TRANSACTION_STATE_TOPIC:
                transactions.on_resignation(name.partition)

        def on_deleted(names: list[TopicPartition]) -> None:
            self._background.run(groups.offsets.on_partitions_deleted(names))

        replicas.on_leading, replicas.on_gone = on_leading, on_gone
        replicas.on_deleted = on_deleted
        groups.start()
        return groups, transactions, markers

    def _registration(self, metadata: MetadataCache) -> BrokerIdZnode:
        return BrokerIdZnode(
            self.identity.broker_id,
            tuple(
                Endpoint(name, own.host, own.port, self.config.security_protocol(name) or name)
                for name, (own,) in metadata.brokers.items()
            ),
            self.config.broker_rack,
            self._clock.now_ms(),
        )

    def _endpoints(self) -> dict[str, tuple[BrokerEndpoint, ...]]:
        """This broker by listener name: as advertised, else as it listens."""
        bound = {listener.address.name: listener.address for listener in self.listeners}
        advertised = {address.name: address for address in self.config.advertised_listeners or ()}
        return {
            name: (
                BrokerEndpoint(
                    self.identity.broker_id,
                    address.host or socket.gethostname(),
                    address.port or bound[name].port,
                    self.config.broker_rack,
                ),
            )
            for name, address in (bound | advertised).items()
        }

    def _start_background(self) -> None:
        config, every, logs = self.config, self._background.every, self._logs
        every(config.log_retention_check_interval_ms / 1000, logs.delete_expired)
        every(config.log_flush_scheduler_interval_ms / 1000, logs.flush_dirty)
        every(config.log_cleaner_backoff_ms / 1000, logs.clean)
        every(60, logs.release_idle_files)
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
    )


def _group_config(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_max_size=config.group_max_size,
        group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_minutes=config.offsets_retention_minutes,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        offsets_topic_compression_codec=Codec(config.offsets_topic_compression_codec),
    )


def _txn_config(config: BrokerConfig) -> TxnConfig:
    return TxnConfig(**{field.name: getattr(config, field.name) for field in fields(TxnConfig)})


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
