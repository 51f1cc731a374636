"""Connections to the other brokers, over the inter-broker and the control plane listener."""

from collections.abc import Callable
from typing import Final

from broker.config import BrokerConfig
from broker.metadata_cache import MetadataCache
from broker.model import TopicPartition
from broker.net.authentication import Security
from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.net.node_to_controller_channel import NodeToControllerChannel
from broker.net.peers import Peers

_CONNECT_TIMEOUT_S: Final = 10.0


class InterBroker:
    """Addresses of the other brokers, connections to them, and the channel to the controller."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: MetadataCache,
        broker_id: int,
        security_of: Callable[[str], Security],
    ) -> None:
        self._metadata = metadata
        self._security_of = security_of
        self._broker_id = broker_id
        self._listener_name = config.inter_broker_listener
        self._control_plane = config.control_plane_listener
        # A broker processes the requests of a connection one after the other. Requests that wait
        # for replicas (transaction markers) must not delay those a producer waits for
        # (verification), nor either of them those that replicas wait for (AlterPartition).
        self._to_controller = Peers(self.connect, config.controller_socket_timeout_ms)
        self.to_leaders = Peers(self.connect, config.request_timeout_ms)
        self.to_coordinators = Peers(self.connect, config.request_timeout_ms)
        self.controller = NodeToControllerChannel(
            self._controller_node, broker_id, self._to_controller
        )
        self.is_controller: Callable[[], bool] = lambda: False
        """Whether this broker is the controller: known before the metadata has it."""

    async def connect(self, node: Node) -> BrokerConnection:
        """Open a new connection to a broker, owned by the caller; ConnectionError if that fails."""
        return await self._open(node, self._listener_name)

    async def connect_as_controller(self, node: Node) -> BrokerConnection:
        """Open a new connection for requests of the controller."""
        return await self._open(node, self._control_plane)

    async def _open(self, node: Node, listener_name: str) -> BrokerConnection:
        security = self._security_of(listener_name)
        return await open_connection(
            node, f"broker-{self._broker_id}", _CONNECT_TIMEOUT_S, security
        )

    def node(self, broker_id: int) -> Node | None:
        """A broker's address; None if it is not alive or has no inter-broker listener."""
        found = self._metadata.endpoint(broker_id, self._listener_name)
        return Node(found.broker_id, found.host, found.port, found.rack) if found else None

    def leader(self, partition: TopicPartition) -> Node | None:
        """The leader of a partition; None if it is unknown or not alive."""
        known = self._metadata.partition(*partition)
        return None if known is None else self.node(known.leader)

    def close(self) -> None:
        """Close the shared connections; requests in flight fail."""
        for peers in (self._to_controller, self.to_leaders, self.to_coordinators):
            peers.close()

    def _controller_node(self) -> Node | None:
        if self.is_controller():
            return Node(self._broker_id, "", 0)
        return self.node(self._metadata.controller_id)
