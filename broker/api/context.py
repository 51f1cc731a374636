"""What a handler is given beside the request: where it came from, and the broker's parts."""

from dataclasses import dataclass

from broker.api.fetch_session import FetchSessionCache
from broker.config import BrokerConfig
from broker.config.dynamic import ConfigStore, DynamicConfig
from broker.controller.topics import TopicController
from broker.metadata_cache import MetadataCache
from broker.net.connection import Peer
from broker.replica.manager import ReplicaManager


@dataclass
class Services:
    """The parts of the broker that handlers use; `server` builds them and puts them here."""

    config: BrokerConfig
    dynamic: DynamicConfig
    config_store: ConfigStore
    metadata: MetadataCache
    replicas: ReplicaManager
    fetch_sessions: FetchSessionCache
    controller: TopicController


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request's circumstances."""

    api_version: int
    correlation_id: int
    client_id: str | None
    peer: Peer
    services: Services
