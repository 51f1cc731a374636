"""Broker settings of the log."""

from broker.config.definitions import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    Settings,
    boolean,
    double,
    integer,
    long,
    string,
    strings,
)
from broker.config.units import DAY_MS, GIB, KIB, MIB, MINUTE_MS
from broker.config.validators import at_least, between, kafka_version, one_of
from broker.config.values import MAX_DOUBLE, MAX_LONG


class LogSettings(Settings):
    """Segments, flushing, retention, compaction. Topics can override most of it."""

    log_dir: str = string("log.dir", default="/tmp/kafka-logs", importance=HIGH)  # noqa: S108  # Kafka's
    """The directory of the log, when `log.dirs` is not given."""
    log_dirs: str | None = string("log.dirs", default=None, importance=HIGH)
    """The directories of the log, with commas between them."""
    log_segment_bytes: int = integer(
        "log.segment.bytes", default=GIB, valid=at_least(14), importance=HIGH, mode=CLUSTER_WIDE
    )
    """The size at which a segment is closed and the next one begun."""
    log_roll_ms: int | None = long("log.roll.ms", default=None, importance=HIGH, mode=CLUSTER_WIDE)
    """The age at which a segment is closed; before `log.roll.hours` if given."""
    log_roll_hours: int = integer("log.roll.hours", default=168, valid=at_least(1), importance=HIGH)
    """The age at which a segment is closed."""
    log_roll_jitter_ms: int | None = long(
        "log.roll.jitter.ms", default=None, importance=HIGH, mode=CLUSTER_WIDE
    )
    """The most by which that age is varied; before `log.roll.jitter.hours` if given."""
    log_roll_jitter_hours: int = integer(
        "log.roll.jitter.hours", default=0, valid=at_least(0), importance=HIGH
    )
    """The most by which that age is varied, so that not all segments close at once."""
    log_retention_ms: int | None = long(
        "log.retention.ms", default=None, importance=HIGH, mode=CLUSTER_WIDE
    )
    """How long records are kept; -1 is for ever; before minutes and hours if given."""
    log_retention_minutes: int | None = integer(
        "log.retention.minutes", default=None, importance=HIGH
    )
    """How long records are kept; before `log.retention.hours` if given."""
    log_retention_hours: int = integer("log.retention.hours", default=168, importance=HIGH)
    """How long records are kept."""
    log_retention_bytes: int = long(
        "log.retention.bytes", default=-1, importance=HIGH, mode=CLUSTER_WIDE
    )
    """The size a partition may have before old segments go; -1 is any size."""
    log_retention_check_interval_ms: int = long(
        "log.retention.check.interval.ms", default=5 * MINUTE_MS, valid=at_least(1)
    )
    """How often segments past their retention are looked for."""
    log_cleanup_policy: tuple[str, ...] = strings(
        "log.cleanup.policy",
        default=("delete",),
        valid=one_of("compact", "delete"),
        mode=CLUSTER_WIDE,
    )
    """What happens to old segments: `delete`, `compact` or both."""
    log_cleaner_threads: int = integer(
        "log.cleaner.threads", default=1, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """Threads that compact logs."""
    log_cleaner_io_max_bytes_per_second: float = double(
        "log.cleaner.io.max.bytes.per.second", default=MAX_DOUBLE, mode=CLUSTER_WIDE
    )
    """What the cleaner may read and write per second, taken together."""
    log_cleaner_dedupe_buffer_size: int = long(
        "log.cleaner.dedupe.buffer.size", default=128 * MIB, mode=CLUSTER_WIDE
    )
    """Memory for the keys of one compaction, shared by all cleaner threads."""
    log_cleaner_io_buffer_size: int = integer(
        "log.cleaner.io.buffer.size", default=512 * KIB, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """Memory for reading and writing while compacting, shared by all cleaner threads."""
    log_cleaner_io_buffer_load_factor: float = double(
        "log.cleaner.io.buffer.load.factor", default=0.9, mode=CLUSTER_WIDE
    )
    """How full the table of keys may become; fuller means more per round, more collisions."""
    log_cleaner_backoff_ms: int = long(
        "log.cleaner.backoff.ms", default=15_000, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """The pause of the cleaner when there is nothing to clean."""
    log_cleaner_min_cleanable_ratio: float = double(
        "log.cleaner.min.cleanable.ratio", default=0.5, valid=between(0, 1), mode=CLUSTER_WIDE
    )
    """The part of a log that must be uncompacted before it is compacted again."""
    log_cleaner_enable: bool = boolean("log.cleaner.enable", default=True)
    """Whether logs are compacted at all."""
    log_cleaner_delete_retention_ms: int = long(
        "log.cleaner.delete.retention.ms", default=DAY_MS, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """How long a tombstone stays after compaction, for readers that are still on their way."""
    log_cleaner_min_compaction_lag_ms: int = long(
        "log.cleaner.min.compaction.lag.ms", default=0, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """How long a record stays uncompacted at least."""
    log_cleaner_max_compaction_lag_ms: int = long(
        "log.cleaner.max.compaction.lag.ms", default=MAX_LONG, valid=at_least(1), mode=CLUSTER_WIDE
    )
    """How long a record may stay uncompacted at most."""
    log_index_size_max_bytes: int = integer(
        "log.index.size.max.bytes", default=10 * MIB, valid=at_least(4), mode=CLUSTER_WIDE
    )
    """The size of an index file."""
    log_index_interval_bytes: int = integer(
        "log.index.interval.bytes", default=4 * KIB, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """Bytes of records between two entries of the offset index."""
    log_flush_interval_messages: int = long(
        "log.flush.interval.messages",
        default=MAX_LONG,
        valid=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
    )
    """Records after which a partition is forced to disk."""
    log_flush_interval_ms: int | None = long(
        "log.flush.interval.ms", default=None, importance=HIGH, mode=CLUSTER_WIDE
    )
    """Age of a record after which its partition is forced to disk."""
    log_flush_scheduler_interval_ms: int = long(
        "log.flush.scheduler.interval.ms", default=MAX_LONG, importance=HIGH
    )
    """How often partitions that are due to be forced to disk are looked for."""
    log_flush_offset_checkpoint_interval_ms: int = integer(
        "log.flush.offset.checkpoint.interval.ms",
        default=MINUTE_MS,
        valid=at_least(0),
        importance=HIGH,
    )
    """How often the recovery points are written down."""
    log_flush_start_offset_checkpoint_interval_ms: int = integer(
        "log.flush.start.offset.checkpoint.interval.ms",
        default=MINUTE_MS,
        valid=at_least(0),
        importance=HIGH,
    )
    """How often the log start offsets are written down."""
    log_segment_delete_delay_ms: int = long(
        "log.segment.delete.delay.ms",
        default=MINUTE_MS,
        valid=at_least(0),
        importance=HIGH,
        mode=CLUSTER_WIDE,
    )
    """How long a segment's files stay after the segment is gone from the log."""
    log_preallocate: bool = boolean("log.preallocate", default=False, mode=CLUSTER_WIDE)
    """Whether a segment's file has its full size from the beginning."""
    log_message_format_version: str = string(
        "log.message.format.version", default="3.0-IV1", valid=kafka_version
    )
    """The record format that is written; of no effect since 3.0."""
    log_message_timestamp_type: str = string(
        "log.message.timestamp.type",
        default="CreateTime",
        valid=one_of("CreateTime", "LogAppendTime"),
        mode=CLUSTER_WIDE,
    )
    """Whose time records carry: `CreateTime` the producer's, `LogAppendTime` the broker's."""
    log_message_timestamp_difference_max_ms: int = long(
        "log.message.timestamp.difference.max.ms",
        default=MAX_LONG,
        valid=at_least(0),
        mode=CLUSTER_WIDE,
    )
    """How far a record's time may be from the broker's; the two settings below say more."""
    log_message_timestamp_before_max_ms: int = long(
        "log.message.timestamp.before.max.ms",
        default=MAX_LONG,
        valid=at_least(0),
        mode=CLUSTER_WIDE,
    )
    """How far a record's time may lie before the broker's."""
    log_message_timestamp_after_max_ms: int = long(
        "log.message.timestamp.after.max.ms", default=MAX_LONG, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """How far a record's time may lie ahead of the broker's."""
    log_message_downconversion_enable: bool = boolean(
        "log.message.downconversion.enable", default=True, importance=LOW, mode=CLUSTER_WIDE
    )
    """Whether old consumers get records converted to the format they know."""
    log_dir_failure_timeout_ms: int = long(
        "log.dir.failure.timeout.ms", default=30_000, valid=at_least(1), importance=LOW
    )
    """How long a broker runs on, unable to tell the controller that a directory failed."""
    log_initial_task_delay_ms: int = long(
        "log.initial.task.delay.ms",
        default=30_000,
        valid=at_least(0),
        importance=LOW,
        internal=True,
    )
    """How long after the start the chores of the log begin."""
    num_recovery_threads_per_data_dir: int = integer(
        "num.recovery.threads.per.data.dir",
        default=1,
        valid=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
    )
    """Threads per directory that recover logs at the start and flush them at the end."""
