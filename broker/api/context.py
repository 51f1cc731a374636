"""What a handler is given beside the request: where it came from, and the broker's parts."""

from dataclasses import dataclass

from broker.api.fetch_session import FetchSessionCache
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.dynamic import ConfigStore, DynamicConfig
from broker.controller.auto_creation import AutoTopicCreation
from broker.controller.channels import LocalBroker
from broker.controller.controller import Controller
from broker.group.coordinator import GroupCoordinator
from broker.group.offset_nodes import OffsetNodes
from broker.metadata_cache import MetadataCache
from broker.net.connection import Peer
from broker.replica.manager import ReplicaManager
from broker.replica.purgatory import Purgatory
from broker.txn.coordinator import TransactionCoordinator
from broker.txn.local_markers import LocalMarkers
from broker.txn.verification import Verifier


@dataclass
class Services:
    """The parts of the broker that handlers use; `server` builds them and puts them here."""

    config: BrokerConfig
    dynamic: DynamicConfig
    config_store: ConfigStore
    metadata: MetadataCache
    replicas: ReplicaManager
    controller_requests: LocalBroker
    """This broker, as the controller sees it."""
    purgatory: Purgatory
    """Where fetches wait."""
    fetch_sessions: FetchSessionCache
    controller: Controller
    auto_creation: AutoTopicCreation
    groups: GroupCoordinator
    offset_nodes: OffsetNodes
    """Where the oldest consumers keep their offsets."""
    transactions: TransactionCoordinator
    markers: LocalMarkers
    verifier: Verifier
    clock: Clock


@dataclass(slots=True)  # frozen, it would take three times as long to make
class RequestContext:
    """One request's circumstances."""

    api_version: int
    correlation_id: int
    client_id: str | None
    peer: Peer
    services: Services
