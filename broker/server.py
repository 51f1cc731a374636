"""Builds every part of a broker, starts and stops them in order: the only wiring."""

import asyncio
import gc
import logging
import socket

from broker.api.context import Services
from broker.api.dispatch import Dispatcher
from broker.api.fetch_session import FetchSessionCache
from broker.background import Background
from broker.config import BrokerConfig
from broker.controller.topics import TopicController
from broker.identity import Identity, stored_broker_id, write_identity
from broker.log.config import LogConfig
from broker.log.manager import LogManager
from broker.metadata_cache import BrokerEndpoint, MetadataCache
from broker.model import Uuid
from broker.net.listener import Limits, Listener
from broker.replica.manager import ReplicaManager

logger = logging.getLogger(__name__)

_GC_THRESHOLDS = (50_000, 50, 1_000)
"""Requests make few cycles; looking for them seldom keeps the pauses out of the latency."""


class Server:
    """One broker. `start` returns when it answers; `stop` when everything is closed."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self._background = Background()
        self.listeners: list[Listener] = []

    async def start(self) -> None:
        """Open the logs, lead the partitions, listen; OSError if an address cannot be had."""
        config = self.config
        self._logs = LogManager(config.log_directories, lambda topic: LogConfig())
        await asyncio.to_thread(self._logs.startup)
        dirs = self._logs.online_dirs
        broker_id = config.broker_id if config.broker_id >= 0 else stored_broker_id(dirs)
        if broker_id is None:
            broker_id = config.reserved_broker_max_id + 1
        self.identity = Identity(broker_id, str(Uuid.random()))
        write_identity(self.identity, dirs)
        self._replicas = ReplicaManager(broker_id, self._logs)
        self._replicas.load_high_watermarks()
        self._metadata = MetadataCache(self.identity.cluster_id, broker_id)
        controller = TopicController(config, self._metadata, self._replicas)
        services = Services(
            config,
            self._metadata,
            self._replicas,
            FetchSessionCache(config.max_incremental_fetch_session_cache_slots, 120_000),
            controller,
        )
        limits = Limits(
            request_max_bytes=config.socket_request_max_bytes,
            max_idle_ms=config.connections_max_idle_ms,
            max_connections=config.max_connections,
            max_connections_per_ip=config.max_connections_per_ip,
            per_ip_overrides=dict(config.max_connections_per_ip_overrides),
            backlog=config.socket_listen_backlog_size,
        )
        dispatcher = Dispatcher(services)
        self.listeners = [Listener(address, limits, dispatcher) for address in config.listeners]
        for listener in self.listeners:
            await listener.start()
        self._metadata.brokers = self._endpoints()
        gc.collect()
        gc.freeze()  # what lives now lives to the end: the collector need not look at it again
        gc.set_threshold(*_GC_THRESHOLDS)
        listening = ",".join(str(listener.address) for listener in self.listeners)
        logger.info("started broker.id=%s listeners=%s", broker_id, listening)

    async def stop(self) -> None:
        """Close every connection, then every log."""
        for listener in self.listeners:
            await listener.stop()
        await self._background.stop()
        self._replicas.checkpoint_high_watermarks()
        await asyncio.to_thread(self._logs.shutdown)
        logger.info("stopped broker.id=%s", self.identity.broker_id)

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
