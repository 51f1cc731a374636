"""Broker settings for the transaction coordinator."""

from broker.config.definitions import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    Settings,
    boolean,
    integer,
    no_effect,
    short,
)
from broker.config.units import DAY_MS, HOUR_MS, MIB, MINUTE_MS
from broker.config.validators import at_least


class TransactionSettings(Settings):
    """Transactions and idempotent producers."""

    transactional_id_expiration_ms: int = integer(
        "transactional.id.expiration.ms", default=7 * DAY_MS, valid=at_least(1), importance=HIGH
    )
    """How long a transactional id is kept after its last use."""
    transaction_max_timeout_ms: int = integer(
        "transaction.max.timeout.ms", default=15 * MINUTE_MS, valid=at_least(1), importance=HIGH
    )
    """The maximum timeout of a transaction."""
    transaction_state_log_num_partitions: int = integer(
        "transaction.state.log.num.partitions", default=50, valid=at_least(1), importance=HIGH
    )
    """The number of partitions of the transaction topic; must not change after deployment."""
    transaction_state_log_replication_factor: int = short(
        "transaction.state.log.replication.factor", default=3, valid=at_least(1), importance=HIGH
    )
    """The replication factor of the transaction topic, which is created when that many brokers are
    alive."""
    transaction_state_log_min_isr: int = integer(
        "transaction.state.log.min.isr", default=2, valid=at_least(1), importance=HIGH
    )
    """The setting `min.insync.replicas` of the transaction topic."""
    transaction_state_log_segment_bytes: int = integer(
        "transaction.state.log.segment.bytes", default=100 * MIB, valid=at_least(1), importance=HIGH
    )
    """The segment size of the transaction topic; small, so that it is compacted and loaded fast."""
    transaction_state_log_load_buffer_size: int = integer(
        "transaction.state.log.load.buffer.size",
        default=5 * MIB,
        valid=at_least(1),
        importance=HIGH,
        effect=no_effect("the partition is read batch by batch"),
    )
    """The read size when transactions are loaded."""
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        default=10_000,
        valid=at_least(1),
        importance=LOW,
    )
    """How often timed-out transactions are aborted."""
    transaction_remove_expired_transaction_cleanup_interval_ms: int = integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        default=HOUR_MS,
        valid=at_least(1),
        importance=LOW,
    )
    """How often expired transactional ids are removed."""
    transaction_partition_verification_enable: bool = boolean(
        "transaction.partition.verification.enable", default=True, importance=LOW, mode=CLUSTER_WIDE
    )
    """Whether the broker verifies that a partition is part of the transaction before it appends
    (KIP-890)."""
    producer_id_expiration_ms: int = integer(
        "producer.id.expiration.ms",
        default=DAY_MS,
        valid=at_least(1),
        importance=LOW,
        mode=CLUSTER_WIDE,
    )
    """How long the state of a producer id is kept after its last write."""
    producer_id_expiration_check_interval_ms: int = integer(
        "producer.id.expiration.check.interval.ms",
        default=10 * MINUTE_MS,
        valid=at_least(1),
        importance=LOW,
        internal=True,
    )
    """How often expired producer ids are removed."""
