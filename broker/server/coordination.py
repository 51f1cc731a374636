"""Builds the group and the transaction coordinator, and connects them to leadership changes.

A broker coordinates the groups and transactional ids stored in the partitions of the internal
topics that it leads. It loads them when it becomes leader and unloads them when it resigns.
"""

from dataclasses import dataclass, fields

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.group.config import GroupConfig
from broker.group.coordinator import GroupCoordinator
from broker.model import BrokerEpoch, TopicPartition
from broker.records.layout import Codec
from broker.replica.internal_topic import InternalTopic
from broker.replica.manager import ReplicaManager
from broker.server.background import Background
from broker.server.inter_broker import InterBroker
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from broker.txn.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from broker.txn.config import TxnConfig
from broker.txn.coordinator import TransactionCoordinator
from broker.txn.local_markers import LocalMarkers
from broker.txn.producer_ids import ControllerProducerIdBlocks
from broker.txn.transaction_marker_channel_manager import TransactionMarkerChannelManager


@dataclass(frozen=True)
class Coordination:
    """The coordinators, and what handlers need of transactions besides."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: LocalMarkers
    verifier: AddPartitionsToTxnManager


def build_coordinators(
    config: BrokerConfig,
    replicas: ReplicaManager,
    inter_broker: InterBroker,
    broker_epoch: BrokerEpoch,
    clock: Clock,
) -> Coordination:
    """Build both coordinators, without starting them."""
    metadata, broker_id = replicas.cluster.metadata, replicas.broker_id
    states = InternalTopic(
        TRANSACTION_STATE_TOPIC, config.transaction_state_log_num_partitions, replicas, metadata
    )
    offsets = InternalTopic(
        OFFSETS_TOPIC,
        config.offsets_topic_num_partitions,
        replicas,
        metadata,
        config.offsets_commit_timeout_ms,
    )
    verifier = AddPartitionsToTxnManager(
        broker_id, inter_broker.leader, inter_broker.to_coordinators
    )
    is_verified = config.transaction_partition_verification_enable
    groups = GroupCoordinator(
        _group_config(config),
        offsets,
        clock,
        verifier.verify_offset_commit if is_verified else None,
    )
    markers = LocalMarkers(
        replicas,
        clock,
        config.request_timeout_ms,
        groups.registry.is_being_loaded,
        groups.offsets.on_transaction_completed,
    )
    transactions = TransactionCoordinator(
        _txn_config(config),
        states,
        TransactionMarkerChannelManager(
            markers, metadata, broker_id, inter_broker.leader, inter_broker.to_leaders
        ),
        ControllerProducerIdBlocks(inter_broker.controller, broker_id, broker_epoch),
        clock,
    )
    verifier.coordinator = transactions
    return Coordination(groups, transactions, markers, verifier)


def follow_leadership(
    coordination: Coordination, replicas: ReplicaManager, background: Background
) -> None:
    """Load and unload coordinator state as this broker becomes leader or follower."""
    groups, transactions = coordination.groups, coordination.transactions

    def on_leading(name: TopicPartition, leader_epoch: int) -> None:
        if name.topic == OFFSETS_TOPIC:
            background.run(groups.load(name.partition, leader_epoch))
        elif name.topic == TRANSACTION_STATE_TOPIC:
            transactions.on_election(name.partition, leader_epoch)

    def on_following(name: TopicPartition, leader_epoch: int) -> None:
        if name.topic == OFFSETS_TOPIC:
            groups.unload(name.partition, leader_epoch)
        elif name.topic == TRANSACTION_STATE_TOPIC:
            transactions.on_resignation(name.partition, leader_epoch)

    def on_gone(name: TopicPartition) -> None:
        if name.topic == OFFSETS_TOPIC:
            groups.unload(name.partition, None)
        elif name.topic == TRANSACTION_STATE_TOPIC:
            transactions.on_resignation(name.partition)

    replicas.on_leading = on_leading
    replicas.on_following = on_following
    replicas.on_gone = on_gone


def _group_config(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_max_size=config.group_max_size,
        group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_minutes=config.offsets_retention_minutes,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        offsets_topic_compression_codec=Codec(config.offsets_topic_compression_codec),
    )


def _txn_config(config: BrokerConfig) -> TxnConfig:
    return TxnConfig(**{field.name: getattr(config, field.name) for field in fields(TxnConfig)})
