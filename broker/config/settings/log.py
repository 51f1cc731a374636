"""Broker settings for logs."""

from broker.config.definitions import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    Settings,
    boolean,
    double,
    fixed,
    integer,
    long,
    no_effect,
    string,
    strings,
)
from broker.config.units import DAY_MS, GIB, KIB, MIB, MINUTE_MS
from broker.config.validators import at_least, between, kafka_version, one_of
from broker.config.values import MAX_DOUBLE, MAX_LONG


class LogSettings(Settings):
    """Segments, flushing, retention, compaction. Topics can override most of them."""

    log_dir: str = string("log.dir", default="/tmp/kafka-logs", importance=HIGH)  # noqa: S108  # Kafka's
    """The log directory if `log.dirs` is not set."""
    log_dirs: str | None = string("log.dirs", default=None, importance=HIGH)
    """The log directories, separated by commas."""
    log_segment_bytes: int = integer(
        "log.segment.bytes", default=GIB, valid=at_least(14), importance=HIGH, mode=CLUSTER_WIDE
    )
    """The size at which a segment is rolled."""
    log_roll_ms: int | None = long("log.roll.ms", default=None, importance=HIGH, mode=CLUSTER_WIDE)
    """The age at which a segment is rolled; overrides `log.roll.hours`."""
    log_roll_hours: int = integer("log.roll.hours", default=168, valid=at_least(1), importance=HIGH)
    """The age at which a segment is rolled."""
    log_roll_jitter_ms: int | None = long(
        "log.roll.jitter.ms", default=None, importance=HIGH, mode=CLUSTER_WIDE
    )
    """The maximum jitter of the roll time; overrides `log.roll.jitter.hours`."""
    log_roll_jitter_hours: int = integer(
        "log.roll.jitter.hours", default=0, valid=at_least(0), importance=HIGH
    )
    """The maximum jitter of the roll time, so that not all segments roll at once."""
    log_retention_ms: int | None = long(
        "log.retention.ms", default=None, importance=HIGH, mode=CLUSTER_WIDE
    )
    """How long records are kept; -1: for ever. Overrides minutes and hours."""
    log_retention_minutes: int | None = integer(
        "log.retention.minutes", default=None, importance=HIGH
    )
    """How long records are kept; overrides `log.retention.hours`."""
    log_retention_hours: int = integer("log.retention.hours", default=168, importance=HIGH)
    """How long records are kept."""
    log_retention_bytes: int = long(
        "log.retention.bytes", default=-1, importance=HIGH, mode=CLUSTER_WIDE
    )
    """The size of a partition above which old segments are deleted; -1: no limit."""
    log_retention_check_interval_ms: int = long(
        "log.retention.check.interval.ms", default=5 * MINUTE_MS, valid=at_least(1)
    )
    """How often segments are checked for retention."""
    log_cleanup_policy: tuple[str, ...] = strings(
        "log.cleanup.policy",
        default=("delete",),
        valid=one_of("compact", "delete"),
        mode=CLUSTER_WIDE,
    )
    """The cleanup policy of old segments: `delete`, `compact` or both."""
    log_cleaner_threads: int = integer(
        "log.cleaner.threads",
        default=1,
        valid=at_least(0),
        mode=CLUSTER_WIDE,
        effect=no_effect("one thread compacts all logs"),
    )
    """Threads of the log cleaner."""
    log_cleaner_io_max_bytes_per_second: float = double(
        "log.cleaner.io.max.bytes.per.second",
        default=MAX_DOUBLE,
        mode=CLUSTER_WIDE,
        effect=no_effect("the cleaner is not throttled"),
    )
    """The maximum read and write rate of the log cleaner in total."""
    log_cleaner_dedupe_buffer_size: int = long(
        "log.cleaner.dedupe.buffer.size", default=128 * MIB, mode=CLUSTER_WIDE
    )
    """Memory for deduplication, shared by all cleaner threads."""
    log_cleaner_io_buffer_size: int = integer(
        "log.cleaner.io.buffer.size", default=512 * KIB, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """Memory for I/O buffers, shared by all cleaner threads."""
    log_cleaner_io_buffer_load_factor: float = double(
        "log.cleaner.io.buffer.load.factor", default=0.9, mode=CLUSTER_WIDE
    )
    """How full the deduplication buffer may become; higher values compact more at a time, with more
    collisions."""
    log_cleaner_backoff_ms: int = long(
        "log.cleaner.backoff.ms", default=15_000, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """How long the cleaner waits when there is nothing to clean."""
    log_cleaner_min_cleanable_ratio: float = double(
        "log.cleaner.min.cleanable.ratio", default=0.5, valid=between(0, 1), mode=CLUSTER_WIDE
    )
    """The minimum ratio of dirty to total log size before a log is cleaned."""
    log_cleaner_enable: bool = boolean("log.cleaner.enable", default=True)
    """Whether the log cleaner runs."""
    log_cleaner_delete_retention_ms: int = long(
        "log.cleaner.delete.retention.ms", default=DAY_MS, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """How long tombstones are kept in compacted topics."""
    log_cleaner_min_compaction_lag_ms: int = long(
        "log.cleaner.min.compaction.lag.ms", default=0, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """The minimum time that a record stays uncompacted."""
    log_cleaner_max_compaction_lag_ms: int = long(
        "log.cleaner.max.compaction.lag.ms", default=MAX_LONG, valid=at_least(1), mode=CLUSTER_WIDE
    )
    """The maximum time that a record stays uncompacted."""
    log_index_size_max_bytes: int = integer(
        "log.index.size.max.bytes", default=10 * MIB, valid=at_least(4), mode=CLUSTER_WIDE
    )
    """The maximum size of an index file."""
    log_index_interval_bytes: int = integer(
        "log.index.interval.bytes", default=4 * KIB, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """Bytes between two entries of the offset index."""
    log_flush_interval_messages: int = long(
        "log.flush.interval.messages",
        default=MAX_LONG,
        valid=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
    )
    """Records after which a partition is flushed to disk."""
    log_flush_interval_ms: int | None = long(
        "log.flush.interval.ms", default=None, importance=HIGH, mode=CLUSTER_WIDE
    )
    """The maximum time before a partition is flushed to disk."""
    log_flush_scheduler_interval_ms: int = long(
        "log.flush.scheduler.interval.ms", default=MAX_LONG, importance=HIGH
    )
    """How often partitions are checked for flushing."""
    log_flush_offset_checkpoint_interval_ms: int = integer(
        "log.flush.offset.checkpoint.interval.ms",
        default=MINUTE_MS,
        valid=at_least(0),
        importance=HIGH,
    )
    """How often the recovery point checkpoint is written."""
    log_flush_start_offset_checkpoint_interval_ms: int = integer(
        "log.flush.start.offset.checkpoint.interval.ms",
        default=MINUTE_MS,
        valid=at_least(0),
        importance=HIGH,
    )
    """How often the log start offset checkpoint is written."""
    log_segment_delete_delay_ms: int = long(
        "log.segment.delete.delay.ms",
        default=MINUTE_MS,
        valid=at_least(0),
        importance=HIGH,
        mode=CLUSTER_WIDE,
    )
    """How long files of a deleted segment are kept."""
    log_preallocate: bool = boolean("log.preallocate", default=False, mode=CLUSTER_WIDE)
    """Whether segment files are preallocated."""
    log_message_format_version: str = string(
        "log.message.format.version",
        default="3.0-IV1",
        valid=kafka_version,
        effect=no_effect("since Kafka 3.0 the format is always version 2"),
    )
    """The message format version; without effect since Kafka 3.0."""
    log_message_timestamp_type: str = string(
        "log.message.timestamp.type",
        default="CreateTime",
        valid=one_of("CreateTime", "LogAppendTime"),
        mode=CLUSTER_WIDE,
    )
    """The timestamp of records: `CreateTime` of the producer or `LogAppendTime` of the broker."""
    log_message_timestamp_difference_max_ms: int = long(
        "log.message.timestamp.difference.max.ms",
        default=MAX_LONG,
        valid=at_least(0),
        mode=CLUSTER_WIDE,
    )
    """The maximum difference of a record timestamp from the broker time; superseded by the two
    settings below."""
    log_message_timestamp_before_max_ms: int = long(
        "log.message.timestamp.before.max.ms",
        default=MAX_LONG,
        valid=at_least(0),
        mode=CLUSTER_WIDE,
    )
    """How far a record timestamp may be before the broker time."""
    log_message_timestamp_after_max_ms: int = long(
        "log.message.timestamp.after.max.ms", default=MAX_LONG, valid=at_least(0), mode=CLUSTER_WIDE
    )
    """How far a record timestamp may be after the broker time."""
    log_message_downconversion_enable: bool = boolean(
        "log.message.downconversion.enable",
        default=True,
        importance=LOW,
        mode=CLUSTER_WIDE,
        effect=fixed("old consumers always get converted records"),
    )
    """Whether records are converted to an older format for old consumers."""
    log_dir_failure_timeout_ms: int = long(
        "log.dir.failure.timeout.ms",
        default=30_000,
        valid=at_least(1),
        importance=LOW,
        effect=no_effect("only KRaft uses it, which this broker does not have"),
    )
    """How long a broker keeps running if it cannot report a failed log directory."""
    log_initial_task_delay_ms: int = long(
        "log.initial.task.delay.ms",
        default=30_000,
        valid=at_least(0),
        importance=LOW,
        internal=True,
        effect=no_effect("each task first runs one interval after the start"),
    )
    """The delay of the first run of log tasks after the start."""
    num_recovery_threads_per_data_dir: int = integer(
        "num.recovery.threads.per.data.dir",
        default=1,
        valid=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
        effect=no_effect("logs are recovered by one thread"),
    )
    """Threads per log directory for recovery at start and flushing at shutdown."""
