"""Broker settings of the transaction coordinator."""

from broker.config.definitions import CLUSTER_WIDE, HIGH, LOW, Settings, boolean, integer, short
from broker.config.units import DAY_MS, HOUR_MS, MIB, MINUTE_MS
from broker.config.validators import at_least


class TransactionSettings(Settings):
    """Transactions and idempotent producers."""

    transactional_id_expiration_ms: int = integer(
        "transactional.id.expiration.ms", default=7 * DAY_MS, valid=at_least(1), importance=HIGH
    )
    """How long a transactional id is remembered after its last use."""
    transaction_max_timeout_ms: int = integer(
        "transaction.max.timeout.ms", default=15 * MINUTE_MS, valid=at_least(1), importance=HIGH
    )
    """The longest timeout a transaction may ask for."""
    transaction_state_log_num_partitions: int = integer(
        "transaction.state.log.num.partitions", default=50, valid=at_least(1), importance=HIGH
    )
    """Partitions of the transaction topic; not to be changed later."""
    transaction_state_log_replication_factor: int = short(
        "transaction.state.log.replication.factor", default=3, valid=at_least(1), importance=HIGH
    )
    """Replicas of the transaction topic; it waits for as many brokers."""
    transaction_state_log_min_isr: int = integer(
        "transaction.state.log.min.isr", default=2, valid=at_least(1), importance=HIGH
    )
    """Replicas of the transaction topic that must be in sync."""
    transaction_state_log_segment_bytes: int = integer(
        "transaction.state.log.segment.bytes", default=100 * MIB, valid=at_least(1), importance=HIGH
    )
    """Segment size of the transaction topic; small, so that it loads fast."""
    transaction_state_log_load_buffer_size: int = integer(
        "transaction.state.log.load.buffer.size",
        default=5 * MIB,
        valid=at_least(1),
        importance=HIGH,
    )
    """Bytes read at a time while transactions are loaded."""
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        default=10_000,
        valid=at_least(1),
        importance=LOW,
    )
    """How often transactions past their timeout are looked for."""
    transaction_remove_expired_transaction_cleanup_interval_ms: int = integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        default=HOUR_MS,
        valid=at_least(1),
        importance=LOW,
    )
    """How often expired transactional ids are looked for."""
    transaction_partition_verification_enable: bool = boolean(
        "transaction.partition.verification.enable", default=True, importance=LOW, mode=CLUSTER_WIDE
    )
    """Whether a write must belong to a transaction its coordinator knows."""
    producer_id_expiration_ms: int = integer(
        "producer.id.expiration.ms",
        default=DAY_MS,
        valid=at_least(1),
        importance=LOW,
        mode=CLUSTER_WIDE,
    )
    """How long a producer id is remembered after its last write."""
    producer_id_expiration_check_interval_ms: int = integer(
        "producer.id.expiration.check.interval.ms",
        default=10 * MINUTE_MS,
        valid=at_least(1),
        importance=LOW,
        internal=True,
    )
    """How often expired producer ids are looked for."""
