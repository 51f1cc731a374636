"""Builds the parts of a broker, starts them in order and stops them in reverse: all the wiring.

    metadata store → identity → dynamic settings → ACLs → logs → replicas → controller →
    coordinators → registration → election → listeners

Each part needs those before it. A broker of a cluster begins to stop with a controlled shutdown.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from broker.admin.broker_state import BrokerState
from broker.api.context import Services
from broker.api.dispatch import Dispatcher
from broker.api.fetch_session import FetchSessionCache
from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.controller.auto_topic_creation_manager import AutoTopicCreationManager
from broker.controller.kafka_controller import KafkaController
from broker.controller.topic_creator import local_topic_creator, topic_creator
from broker.group.offset_nodes import OffsetNodes
from broker.log.config import LogConfig
from broker.log.manager import LogManager
from broker.metadata.client_configs import ClientConfigStore
from broker.metadata.config_store import ZnodeConfigStore
from broker.metadata.delegation_token_manager import DelegationTokenManager
from broker.metadata.errors import StoreError
from broker.metadata.session import SessionState
from broker.metadata.store import MetadataStore
from broker.metadata.zk_config_manager import ZkConfigManager
from broker.metadata.znodes.brokers import BrokerIdZnode, Endpoint
from broker.metadata.znodes.notifications import LogDirEventZnode
from broker.metadata_cache import MetadataCache
from broker.model import BrokerEpoch, TopicPartition
from broker.net.connection import Peer, ResponseParts
from broker.net.connection_quotas import ConnectionQuotas
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from broker.replica.controller_requests import ControllerRequests
from broker.replica.manager import ReplicaCluster, ReplicaManager
from broker.server.authorization import Authorization
from broker.server.background import Background
from broker.server.client_quotas import ClientQuotas
from broker.server.controlled_shutdown import move_leaders_away
from broker.server.coordination import build_coordinators, follow_leadership
from broker.server.identity import (
    Identity,
    check_broker_id,
    check_cluster_id,
    stored_broker_id,
    stored_cluster_id,
    write_identity,
)
from broker.server.inter_broker import InterBroker
from broker.server.listener_security import ListenerSecurities
from broker.server.local_broker import ControlledBroker
from broker.server.logs import build_log_manager, start_periodic_work
from broker.server.membership import (
    Membership,
    generate_broker_id,
    make_cluster_id,
    make_persistent_paths,
    registered_cluster_id,
)
from broker.server.passwords import encrypt_again, password_encoder
from broker.server.platform import Platform, ServerListener
from broker.server.socket_config import connection_settings, socket_server_config
from broker.server.tokens import build_token_manager, expire_tokens
from broker.server.user_credentials import follow_user_credentials

if TYPE_CHECKING:
    from broker.api.measured import Measured
    from broker.server.admin_port import AdminPort

logger = logging.getLogger(__name__)

_FETCH_SESSION_EVICTION_MS = 120_000
"""How long a fetch session must be idle to be evicted for another; Kafka has no setting either."""

_RESIGNATION_TIMEOUT_S = 5.0
"""How long a controller that stops tries to resign: ZooKeeper may be unreachable."""


class StartAborted(Exception):
    """The broker was stopped while it was starting; it has changed nothing."""


class Server:
    """One broker. `start` returns when it serves clients; `stop` when everything is closed.

    Fields without a value in the constructor are set by `start`, in the order in which they stand.
    """

    def __init__(self, config: BrokerConfig, platform: Platform | None = None) -> None:
        self.config = config
        self._platform = platform or Platform()
        self._clock = self._platform.clock
        self._background = Background()
        self._broker_epoch = BrokerEpoch()
        self._loop = asyncio.get_running_loop()
        self.stopping = asyncio.Event()
        """Set when the broker is to stop: by a signal, or because its last log directory failed."""
        self.has_failed = False
        """Whether the broker stops because of a failure."""
        self.listeners: list[ServerListener] = []
        self._quotas: ConnectionQuotas
        self._securities: ListenerSecurities
        self._logs: LogManager
        self._store: MetadataStore
        self.identity: Identity
        self._dynamic: DynamicConfig
        self._config_manager: ZkConfigManager
        self._authorization: Authorization
        self._client_quotas: ClientQuotas
        self._inter_broker: InterBroker
        self._replicas: ReplicaManager
        self._membership: Membership
        self._tokens: DelegationTokenManager | None
        self._services: Services
        self._dispatcher: Dispatcher | Measured
        self._admin: AdminPort | None = None
        """The admin port; None if it is not configured."""

    async def start(self) -> None:
        """Start all parts.

        OSError, IdentityError, StoreError, ConfigError and ApiError say why it cannot start;
        StartAborted if `stopping` was set meanwhile.
        """
        self._bind()  # first: an address in use must not leave logs half opened
        try:
            await self._start()
        except BaseException:
            if self._admin is not None:
                self._admin.close()
            raise

    async def _start(self) -> None:
        self._logs = build_log_manager(
            self.config, self._platform, self._log_config, self._on_dir_offline_in_any_thread
        )
        await self._join_cluster()
        await self._load_dynamic_config()
        await self._load_acls()
        await self._load_client_quotas()
        await asyncio.to_thread(self._logs.startup)
        try:
            write_identity(self.identity, self._logs.online_dirs)
            self._build(self._dynamic)
            await self._register()
        except BaseException:
            # Nothing was served yet: a clean shutdown spares the next start a recovery.
            await asyncio.to_thread(self._logs.shutdown)
            await self._store.close()
            raise
        await self._open()
        start_periodic_work(self._background, self.config, self._logs, self._replicas)
        self._set_state(BrokerState.RUNNING)
        listening = ",".join(str(listener.address) for listener in self.listeners)
        logger.info("started broker.id=%s listeners=%s", self.identity.broker_id, listening)

    def _set_state(self, state: BrokerState) -> None:
        if self._admin is not None:
            self._admin.set_state(state)

    def _log_config(self, topic: str) -> LogConfig:
        """The present settings of a topic's logs."""
        return LogConfig.of(self._dynamic.topic(topic))

    async def _register(self) -> None:
        """Register in the store; StartAborted if `stopping` is set meanwhile.

        Registration may have to wait until the previous session of this broker has expired.
        """
        registering = asyncio.create_task(self._membership.join())
        stopping = asyncio.create_task(self.stopping.wait())
        await asyncio.wait([registering, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not registering.done():
            registering.cancel()
            await asyncio.wait([registering])
            raise StartAborted
        await registering

    async def stop(self) -> None:
        """Move leaders away, close every connection, then the logs, then the store."""
        self._set_state(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
        await self._maybe_shut_down_controlled()
        self._set_state(BrokerState.SHUTTING_DOWN)
        await self._membership.leave()
        await self._config_manager.stop()
        if self._tokens is not None:
            await self._tokens.stop()
        await self._authorization.stop()
        for listener in self.listeners:
            await listener.stop()
        await self._services.groups.stop()
        await self._services.transactions.stop()
        await self._services.auto_creation.stop()
        await self._background.stop()
        await self._replicas.close()
        await asyncio.to_thread(self._logs.shutdown)
        with suppress(TimeoutError):  # the end of the session has the same effect
            async with asyncio.timeout(_RESIGNATION_TIMEOUT_S):
                await self._services.controller.stop()
        self._inter_broker.close()
        await self._securities.close()
        await self._store.close()
        if self._admin is not None:
            await asyncio.to_thread(self._admin.close)
        logger.info("stopped broker.id=%s", self.identity.broker_id)

    async def _maybe_shut_down_controlled(self) -> None:
        """Let other brokers lead, if there is a cluster and its store can be written."""
        config = self._services.dynamic.broker
        if not (config.zookeeper_connect and config.controlled_shutdown_enable):
            return
        if self._store.session.state is not SessionState.CONNECTED:
            logger.warning("skipping controlled shutdown: ZooKeeper is not connected")
            return
        request = ControlledShutdownRequest(
            broker_id=self.identity.broker_id, broker_epoch=self._broker_epoch.value
        )
        await move_leaders_away(self._inter_broker.controller, request, config)

    def _on_dir_offline_in_any_thread(self, path: Path) -> None:
        self._loop.call_soon_threadsafe(self._on_dir_offline, path)

    def _on_dir_offline(self, path: Path) -> None:
        """Notify the controller; stop if it was the last directory."""
        if not self._logs.online_dirs:
            logger.critical("stopping because the last log directory failed dir=%s", path)
            self.has_failed = True
            self.stopping.set()
        elif self._replicas.log_dir_failed(path):
            self._background.run(self._notify_of_failed_dir())

    async def _notify_of_failed_dir(self) -> None:
        """Create the znode that makes the controller query this broker's replicas."""
        data = LogDirEventZnode.encode(self.identity.broker_id)
        try:
            await self._store.create(LogDirEventZnode.PREFIX, data, sequence=True)
        except StoreError as error:
            logger.error("cannot notify the controller of the failed log directory: %s", error)

    def _bind(self) -> None:
        self._quotas = ConnectionQuotas(socket_server_config(self.config))
        self._securities = ListenerSecurities(self.config, self._clock)
        for address in self.config.listeners:
            security = self._securities.of(address.name)
            listener = self._platform.listen(address, self._quotas, self._dispatch, security)
            try:
                listener.bind()
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else error
                raise OSError(f"cannot listen on {address}: {reason}") from error
            self.listeners.append(listener)
        if self.config.admin_listeners is not None:
            from broker.server.admin_port import AdminPort  # http.server costs 15 ms

            self._admin = AdminPort(self.config, self.listeners)

    def _dispatch(self, frame: memoryview, peer: Peer) -> ResponseParts | Awaitable[ResponseParts]:
        """Process a request; listeners are bound before the dispatcher exists, but not started."""
        return self._dispatcher(frame, peer)

    async def _join_cluster(self) -> None:
        """Open the store and determine broker and cluster id; then write what the store lacks."""
        dirs = self._logs.online_dirs
        known = stored_cluster_id(dirs)
        self._store = await self._platform.open_store(
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

    async def _load_acls(self) -> None:
        """Read the ACLs, if there is an authorizer, and follow their changes from now on."""
        self._authorization = Authorization(self.config, self._store, self._clock)
        await self._authorization.start()

    async def _load_client_quotas(self) -> None:
        """Read the quotas of clients, and follow their changes from now on."""
        self._client_quotas = ClientQuotas(self.config, ClientConfigStore(self._store), self._clock)
        self._config_manager.on_client_change(self._client_quotas.reload)
        await self._client_quotas.load()
        self._quotas.ip_throttle_ms = self._client_quotas.ip_throttle_ms

    async def _load_dynamic_config(self) -> None:
        """Read the dynamic settings, and follow their changes from now on."""
        self._dynamic = DynamicConfig(self.config, self.identity.broker_id)
        self._dynamic.passwords = encoder = password_encoder(self.config)
        if encoder is not None:
            await encrypt_again(encoder, ZnodeConfigStore(self._store), self.identity.broker_id)
        self._config_manager = ZkConfigManager(self._store, self._dynamic, self._clock)
        self._dynamic.on_broker_change(lambda _, new: self._securities.reconfigure(new))
        self._dynamic.on_validation(self._securities.validate)
        await self._config_manager.start()
        await follow_user_credentials(
            self._config_manager, ClientConfigStore(self._store), self._securities.scram
        )

    def _build(self, dynamic: DynamicConfig) -> None:
        """Build the parts above the logs, without starting them."""
        config, broker_id = self.config, self.identity.broker_id
        metadata = MetadataCache(self.identity.cluster_id)
        links = self._inter_broker = InterBroker(
            config, metadata, broker_id, self._securities.connecting
        )
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
        controlled = ControlledBroker(ControllerRequests(self._replicas), self._config_manager)
        controller = self._build_controller(dynamic, controlled)
        coordination = build_coordinators(
            config, self._replicas, links, self._broker_epoch, self._clock
        )
        follow_leadership(coordination, self._replicas, self._background)
        self._tokens = build_token_manager(config, self._store, self._securities.scram, self._clock)
        self._services = Services(
            config=config,
            dynamic=dynamic,
            config_store=ZnodeConfigStore(self._store),
            client_configs=ClientConfigStore(self._store),
            metadata=metadata,
            replicas=self._replicas,
            controller_requests=controlled,
            purgatory=self._replicas.purgatory,
            fetch_sessions=FetchSessionCache(
                config.max_incremental_fetch_session_cache_slots,
                _FETCH_SESSION_EVICTION_MS,
                self._replicas.purgatory,
            ),
            controller=controller,
            auto_creation=AutoTopicCreationManager(
                dynamic,
                topic_creator(controller, links.controller),
                is_alone=not config.zookeeper_connect,
            ),
            groups=coordination.groups,
            offset_nodes=OffsetNodes(self._store),
            transactions=coordination.transactions,
            markers=coordination.markers,
            verifier=coordination.verifier,
            clock=self._clock,
            tokens=self._tokens,
            authorizer=self._authorization.authorizer,
            acls=self._authorization.acls,
        )
        self._replicas.on_deleted = self._on_deleted
        self._dispatcher = Dispatcher(self._services, self._client_quotas.managers)
        if self._admin is not None:
            self._dispatcher = self._admin.attach(
                broker_id, self._services, self._store.session, self._dispatcher
            )
            self._admin.show_quotas(self._client_quotas.managers)
            self._admin.run_periodic_work(self._background)

    def _build_controller(
        self, dynamic: DynamicConfig, controlled: ControlledBroker
    ) -> KafkaController:
        """Build the controller and what depends on it: its local channel and the membership."""
        links = self._inter_broker
        controller = KafkaController(
            self._store, dynamic, controlled, links.connect_as_controller, self._clock
        )
        links.is_controller = lambda: controller.is_active
        links.controller.local = {
            ApiKey.ALTER_PARTITION: controller.alter_partition,
            ApiKey.CONTROLLED_SHUTDOWN: controller.controlled_shutdown,
            ApiKey.ALLOCATE_PRODUCER_IDS: controller.allocate_producer_ids,
            ApiKey.CREATE_TOPICS: local_topic_creator(controller),
        }
        self._membership = Membership(
            self._store,
            self._registration,
            self._broker_epoch,
            self.config.zookeeper_session_timeout_ms,
        )
        self._membership.on_rejoined = controller.rejoined
        dynamic.on_broker_change(self._maybe_update_registration)
        dynamic.on_broker_change(self._maybe_change_quotas)
        return controller

    def _maybe_update_registration(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """Update the registration if clients are to use other addresses."""
        if new.advertised_listeners != old.advertised_listeners:
            self._background.run(self._membership.update())

    def _maybe_change_quotas(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """Apply the limits of connections, which are dynamic."""
        if connection_settings(new) != connection_settings(old):
            self._background.run(self._change_quotas(new))

    async def _change_quotas(self, config: BrokerConfig) -> None:
        try:
            # In a thread: it may resolve host names.
            changed = await asyncio.to_thread(socket_server_config, config)
        except OSError as error:
            logger.error("max.connections.per.ip.overrides is not applied: %s", error)
            return
        self._quotas.reconfigure(changed)

    def _on_deleted(self, names: list[TopicPartition]) -> None:
        topics = {name.topic for name in names}
        self._config_manager.on_topics_deleted(topics)
        for topic in topics:
            self._replicas.environment.topic_stats.remove(topic)
        self._background.run(self._services.groups.offsets.on_partitions_deleted(names))

    async def _open(self) -> None:
        """Take part in the election, start the coordinators, and only then accept clients."""
        services = self._services
        services.groups.start()
        await services.controller.start()
        services.transactions.start()
        if self._tokens is not None:
            await self._tokens.start()
            interval_s = self.config.delegation_token_expiry_check_interval_ms / 1000
            self._background.run(expire_tokens(self._tokens, interval_s))
        self._securities.follow_changes()
        for listener in self.listeners:
            await listener.start()

    def _registration(self) -> BrokerIdZnode:
        """This broker's registration: its advertised listeners, or else those it is bound to."""
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
