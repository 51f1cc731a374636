"""Builds every part of a broker, starts and stops them in order: the only wiring."""

import gc
import logging
import socket

from broker.api.context import Services
from broker.api.dispatch import Dispatcher
from broker.config import BrokerConfig
from broker.metadata_cache import BrokerEndpoint, MetadataCache
from broker.model import Uuid
from broker.net.listener import Limits, Listener

logger = logging.getLogger(__name__)

_FIRST_GENERATED_ID = 1001
"""The first id Kafka generates for a broker that was given none (`reserved.broker.max.id` + 1)."""


class Server:
    """One broker. `start` returns when it answers; `stop` when everything is closed."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.broker_id = config.broker_id if config.broker_id >= 0 else _FIRST_GENERATED_ID
        self._services = Services(config, MetadataCache(str(Uuid.random()), self.broker_id, {}))
        dispatcher = Dispatcher(self._services)
        limits = Limits(
            request_max_bytes=config.socket_request_max_bytes,
            max_idle_ms=config.connections_max_idle_ms,
            max_connections=config.max_connections,
            max_connections_per_ip=config.max_connections_per_ip,
            per_ip_overrides=dict(config.max_connections_per_ip_overrides),
            backlog=config.socket_listen_backlog_size,
        )
        self.listeners = [Listener(address, limits, dispatcher) for address in config.listeners]

    async def start(self) -> None:
        """Listen on every listener; OSError if an address cannot be had."""
        for listener in self.listeners:
            await listener.start()
        self._services.metadata = MetadataCache(
            self._services.metadata.cluster_id, self.broker_id, self._endpoints()
        )
        gc.collect()
        gc.freeze()  # what lives now lives to the end: the collector need not look at it again
        listening = ",".join(str(listener.address) for listener in self.listeners)
        logger.info("started broker.id=%s listeners=%s", self.broker_id, listening)

    async def stop(self) -> None:
        """Close every connection, then every socket."""
        for listener in self.listeners:
            await listener.stop()
        logger.info("stopped broker.id=%s", self.broker_id)

    def _endpoints(self) -> dict[str, tuple[BrokerEndpoint, ...]]:
        """This broker by listener name: as advertised, else as it listens."""
        bound = {listener.address.name: listener.address for listener in self.listeners}
        advertised = {address.name: address for address in self.config.advertised_listeners}
        return {
            name: (
                BrokerEndpoint(
                    self.broker_id,
                    address.host or socket.gethostname(),
                    address.port or bound[name].port,
                    self.config.broker_rack,
                ),
            )
            for name, address in (bound | advertised).items()
        }
