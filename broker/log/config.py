"""The topic settings that concern a log, under Kafka's names with underscores."""

from dataclasses import dataclass, field, fields
from functools import lru_cache

from broker.config.topic import TopicConfig

MAX_LONG = 2**63 - 1
_HOUR_MS = 60 * 60 * 1000

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
PRODUCER = "producer"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one topic's logs; the defaults are those of Kafka 3.9.

    `cleanup_policy` holds `delete`, `compact` or both. `compression_type` is `producer` (keep that
    of the batch), `uncompressed`, or a codec's name. Negative numbers mean "no limit" where Kafka
    allows that (`retention_ms`, `retention_bytes`).
    """

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * _HOUR_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    preallocate: bool = False
    flush_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * _HOUR_MS
    file_delete_delay_ms: int = 60_000
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    delete_retention_ms: int = 24 * _HOUR_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_LONG
    min_cleanable_dirty_ratio: float = 0.5
    max_message_bytes: int = 1024 * 1024 + 12
    message_timestamp_type: str = CREATE_TIME
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_after_max_ms: int = MAX_LONG
    compression_type: str = PRODUCER
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3

    # Derived from the others, because they are needed at every append.
    is_compacted: bool = field(init=False)
    """Whether the cleaner keeps only the last record of each key."""
    max_segment_ms: int = field(init=False)
    """How long a segment may stay active: compaction must be able to reach its records in time.

    An active segment is never cleaned, so `max_compaction_lag_ms` forces the roll.
    """
    takes_batches_as_they_are: bool = field(init=False)
    """Whether no setting requires single records to be checked, another codec, or a flush."""

    def __post_init__(self) -> None:
        is_compacted, max_segment_ms = "compact" in self.cleanup_policy, self.segment_ms
        if is_compacted and self.max_compaction_lag_ms > 0:
            max_segment_ms = min(self.max_compaction_lag_ms, self.segment_ms)
        object.__setattr__(self, "is_compacted", is_compacted)
        object.__setattr__(self, "max_segment_ms", max_segment_ms)
        object.__setattr__(
            self,
            "takes_batches_as_they_are",
            not is_compacted
            and self.compression_type == PRODUCER
            and self.message_timestamp_type == CREATE_TIME
            and self.message_timestamp_before_max_ms == MAX_LONG
            and self.message_timestamp_after_max_ms == MAX_LONG
            and self.flush_messages == MAX_LONG
            and self.max_message_bytes <= self.segment_bytes,
        )

    @classmethod
    def of(cls, topic: TopicConfig) -> "LogConfig":
        """The topic's settings that concern its logs; they have the same names.

        Logs with equal settings share one object: nearly all of a broker's logs have the same.
        """
        values = {known.name: getattr(topic, known.name) for known in fields(cls) if known.init}
        values["cleanup_policy"] = frozenset(topic.cleanup_policy)
        values["message_timestamp_before_max_ms"] = topic.timestamp_before_max_ms
        values["message_timestamp_after_max_ms"] = topic.timestamp_after_max_ms
        return _shared(cls(**values))

    @property
    def is_deleted_by_retention(self) -> bool:
        """Whether retention by time and size applies."""
        return "delete" in self.cleanup_policy


@lru_cache(maxsize=1024)
def _shared(config: LogConfig) -> LogConfig:
    """The first of all equal ones."""
    return config


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStateConfig:
    """Broker settings of the producer state: transactional.id and producer.id expiry and checks."""

    producer_id_expiration_ms: int = 24 * _HOUR_MS
    max_transaction_timeout_ms: int = 15 * 60 * 1000
    verify_transactions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerConfig:
    """Broker settings of the cleaner (`log.cleaner.…`)."""

    enable: bool = True
    dedupe_buffer_size: int = 128 * 1024 * 1024
    io_buffer_load_factor: float = 0.9
    io_buffer_size: int = 512 * 1024
