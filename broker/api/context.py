"""What a handler gets besides the request: who sent it, and the services of the broker."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.api.fetch_session import FetchSessionCache
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.dynamic import ConfigStore, DynamicConfig
from broker.controller.auto_topic_creation_manager import AutoTopicCreationManager
from broker.controller.controller_channel_manager import LocalBroker
from broker.controller.kafka_controller import KafkaController
from broker.group.coordinator import GroupCoordinator
from broker.group.offset_nodes import OffsetNodes
from broker.metadata.acl_store import AclStore
from broker.metadata.client_configs import ClientConfigStore
from broker.metadata.delegation_token_manager import DelegationTokenManager
from broker.metadata_cache import MetadataCache
from broker.metrics.request_metrics import RequestMetrics
from broker.net.connection import Peer
from broker.quota.quota_managers import QuotaManagers
from broker.replica.manager import ReplicaManager
from broker.replica.purgatory import Purgatory
from broker.security.authorizer import AclAuthorizer
from broker.txn.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from broker.txn.coordinator import TransactionCoordinator
from broker.txn.local_markers import LocalMarkers

if TYPE_CHECKING:
    from broker.api.request_usage import RequestUsage


@dataclass
class Services:
    """The parts of the broker that handlers use; built by `broker.server`."""

    config: BrokerConfig
    dynamic: DynamicConfig
    config_store: ConfigStore
    client_configs: ClientConfigStore
    """Quotas and SCRAM credentials, as stored in /config."""
    metadata: MetadataCache
    replicas: ReplicaManager
    controller_requests: LocalBroker
    """This broker, as the controller sees it."""
    purgatory: Purgatory
    """Holds fetches until there are enough bytes."""
    fetch_sessions: FetchSessionCache
    controller: KafkaController
    auto_creation: AutoTopicCreationManager
    groups: GroupCoordinator
    offset_nodes: OffsetNodes
    """Offsets in znodes, for version 0 of OffsetCommit and OffsetFetch."""
    transactions: TransactionCoordinator
    markers: LocalMarkers
    verifier: AddPartitionsToTxnManager
    clock: Clock
    tokens: DelegationTokenManager | None = None
    """Delegation tokens; None if they are not enabled."""
    authorizer: AclAuthorizer | None = None
    """None: every client may do everything."""
    acls: AclStore | None = None
    """The ACLs of the authorizer; None without one."""
    client_quotas: QuotaManagers | None = None
    """None until a quota is set, so that requests do not look for quotas."""
    request_metrics: RequestMetrics | None = None
    """Where error codes are counted; None if metrics are not exposed."""


@dataclass(slots=True)  # not frozen: that makes creation three times slower
class RequestContext:
    """Where one request came from, and in which version."""

    api_version: int
    correlation_id: int
    client_id: str | None
    peer: Peer
    services: Services
    api_key: int
    usage: "RequestUsage | None" = None
    """What the request uses of quotas; None without quotas."""
