"""What a handler is given beside the request: where it came from, and the broker's parts."""

from dataclasses import dataclass

from broker.config import BrokerConfig
from broker.metadata_cache import MetadataCache
from broker.net.connection import Peer


@dataclass
class Services:
    """The parts of the broker that handlers use; `server` builds them and puts them here."""

    config: BrokerConfig
    metadata: MetadataCache


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request's circumstances."""

    api_version: int
    correlation_id: int
    client_id: str | None
    peer: Peer
    services: Services
