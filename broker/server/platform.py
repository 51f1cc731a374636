"""What a broker uses of the machine it runs on: clock, disk, metadata store and listening sockets.

Production uses the defaults. The simulation (tests/simulation) runs whole brokers on a virtual
clock, a simulated disk, network and ZooKeeper by passing its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from broker.clock import Clock, SystemClock
from broker.config import BrokerConfig
from broker.config import Listener as ListenerAddress
from broker.log.files import DISK, FileSystem
from broker.metadata.store import MetadataStore
from broker.net.connection import RequestHandler
from broker.net.connection_quotas import ConnectionQuotas
from broker.net.listener import Listener
from broker.net.listener_security import ListenerSecurity
from broker.server.stores import open_store


class ServerListener(Protocol):
    """What the server needs of a listener; see `broker.net.listener.Listener`."""

    @property
    def address(self) -> ListenerAddress:
        """Where it listens; after `bind` with the port that the system chose."""

    def bind(self) -> None:
        """Take the address; OSError if it is in use."""

    async def start(self) -> None:
        """Accept clients."""

    async def stop(self) -> None:
        """Close the listener and its connections."""


class OpenStore(Protocol):
    """Opens the metadata store of a broker; see `broker.server.stores.open_store`."""

    async def __call__(
        self, config: BrokerConfig, clock: Clock, *, belongs_to_cluster: bool
    ) -> MetadataStore:
        """Open it; ConfigError or StoreError say why that is impossible."""


@dataclass(frozen=True)
class Platform:
    """Clock, disk, metadata store and listeners of one broker."""

    clock: Clock = field(default_factory=SystemClock)
    fs: FileSystem = DISK
    open_store: OpenStore = open_store
    listen: Callable[
        [ListenerAddress, ConnectionQuotas, RequestHandler, ListenerSecurity], ServerListener
    ] = Listener
