"""How this broker reaches the others: over one listener, at the addresses the controller told."""

from collections.abc import Callable
from typing import Final

from broker.config import BrokerConfig
from broker.metadata_cache import MetadataCache
from broker.model import TopicPartition
from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.net.controller_channel import ControllerChannel
from broker.net.peers import Peers

_CONNECT_TIMEOUT_S: Final = 10.0


class InterBroker:
    """Addresses and connections of the other brokers, and the way to the controller."""

    def __init__(self, config: BrokerConfig, metadata: MetadataCache, broker_id: int) -> None:
        self._metadata = metadata
        self._broker_id = broker_id
        self._listener_name = config.inter_broker_listener
        # A broker answers the requests of a connection one after the other. What waits for replicas
        # (markers) must not keep back what a producer waits for (verification), nor both of them
        # what the replicas may be waiting for (the controller's word on an ISR).
        self._to_controller = Peers(self.connect, config.controller_socket_timeout_ms)
        self.to_leaders = Peers(self.connect, config.request_timeout_ms)
        self.to_coordinators = Peers(self.connect, config.request_timeout_ms)
        self.controller = ControllerChannel(self._controller_node, broker_id, self._to_controller)
        self.is_controller: Callable[[], bool] = lambda: False
        """Whether this broker is the controller; known here before the controller tells it."""

    async def connect(self, node: Node) -> BrokerConnection:
        """A connection of its own to a broker; ConnectionError."""
        return await open_connection(node, f"broker-{self._broker_id}", _CONNECT_TIMEOUT_S)

    def node(self, broker_id: int) -> Node | None:
        """A broker's address; None if it is not alive, or does not have the listener."""
        found = self._metadata.endpoint(broker_id, self._listener_name)
        return Node(found.broker_id, found.host, found.port, found.rack) if found else None

    def leader(self, partition: TopicPartition) -> Node | None:
        """The leader of a partition; None if none is known that lives."""
        if not self._metadata.has_partition(*partition):
            return None
        known = self._metadata.topics[partition.topic].partitions[partition.partition]
        return self.node(known.leader)

    def close(self) -> None:
        """Close the connections that are shared; requests under way fail."""
        for peers in (self._to_controller, self.to_leaders, self.to_coordinators):
            peers.close()

    def _controller_node(self) -> Node | None:
        if self.is_controller():
            return Node(self._broker_id, "", 0)
        return self.node(self._metadata.controller_id)
