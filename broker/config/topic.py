"""Topic settings, and the broker settings they fall back to.

Settings that a topic does not override are the broker's, which have other names.
"""

from collections.abc import Mapping
from typing import Any, Final

from broker.config.broker import BrokerConfig
from broker.config.definitions import (
    LOW,
    Settings,
    boolean,
    double,
    fixed,
    integer,
    long,
    no_effect,
    rejected,
    string,
    strings,
)
from broker.config.units import DAY_MS, GIB, KIB, MIB, MINUTE_MS
from broker.config.validators import (
    at_least,
    between,
    gzip_level,
    kafka_version,
    one_of,
    throttled_replicas,
)
from broker.config.values import MAX_LONG, ConfigError
from broker.errors import ApiError, ErrorCode


class TopicConfig(Settings):
    """The effective settings of a topic; `originals` are its overrides."""

    cleanup_policy: tuple[str, ...] = strings(
        "cleanup.policy", default=("delete",), valid=one_of("compact", "delete")
    )
    """The cleanup policy of old segments: `delete`, `compact` or both."""
    compression_type: str = string(
        "compression.type",
        default="producer",
        valid=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    )
    """The compression codec of the topic; `producer` keeps the codec of the producer."""
    compression_gzip_level: int = integer("compression.gzip.level", default=-1, valid=gzip_level)
    """The gzip level that the broker compresses with; -1 is the default of the codec."""
    compression_lz4_level: int = integer("compression.lz4.level", default=9, valid=between(1, 17))
    """The lz4 level that the broker compresses with."""
    compression_zstd_level: int = integer(
        "compression.zstd.level", default=3, valid=between(-131_072, 22)
    )
    """The zstd level that the broker compresses with."""
    delete_retention_ms: int = long("delete.retention.ms", default=DAY_MS, valid=at_least(0))
    """How long tombstones are kept after compaction."""
    file_delete_delay_ms: int = long("file.delete.delay.ms", default=MINUTE_MS, valid=at_least(0))
    """How long files of a deleted segment are kept."""
    flush_messages: int = long("flush.messages", default=MAX_LONG, valid=at_least(1))
    """Records after which a partition is flushed to disk."""
    flush_ms: int = long("flush.ms", default=MAX_LONG, valid=at_least(0))
    """The maximum time before a partition is flushed to disk."""
    follower_replication_throttled_replicas: tuple[str, ...] = strings(
        "follower.replication.throttled.replicas", default=(), valid=throttled_replicas
    )
    """Replicas throttled on the follower side, `partition:broker`; `*`: all."""
    index_interval_bytes: int = integer("index.interval.bytes", default=4 * KIB, valid=at_least(0))
    """Bytes between two entries of the offset index."""
    leader_replication_throttled_replicas: tuple[str, ...] = strings(
        "leader.replication.throttled.replicas", default=(), valid=throttled_replicas
    )
    """Replicas throttled on the leader side, `partition:broker`; `*`: all."""
    local_retention_bytes: int = long(
        "local.retention.bytes",
        default=-2,
        valid=at_least(-2),
        effect=no_effect("this broker has no tiered storage"),
    )
    """The local size of a partition whose segments are remote; -2: `retention.bytes`."""
    local_retention_ms: int = long(
        "local.retention.ms",
        default=-2,
        valid=at_least(-2),
        effect=no_effect("this broker has no tiered storage"),
    )
    """How long segments are kept locally after they are remote; -2: `retention.ms`."""
    max_compaction_lag_ms: int = long("max.compaction.lag.ms", default=MAX_LONG, valid=at_least(1))
    """The maximum time that a record stays uncompacted."""
    max_message_bytes: int = integer("max.message.bytes", default=MIB + 12, valid=at_least(0))
    """The largest record batch that is accepted, after compression."""
    message_downconversion_enable: bool = boolean(
        "message.downconversion.enable",
        default=True,
        importance=LOW,
        effect=fixed("old consumers always get converted records"),
    )
    """Whether records are converted to an older format for old consumers."""
    message_format_version: str = string(
        "message.format.version",
        default="3.0-IV1",
        valid=kafka_version,
        effect=no_effect("since Kafka 3.0 the format is always version 2"),
    )
    """The message format version; without effect since Kafka 3.0."""
    message_timestamp_after_max_ms: int = long(
        "message.timestamp.after.max.ms", default=MAX_LONG, valid=at_least(0)
    )
    """How far a record timestamp may be after the broker time."""
    message_timestamp_before_max_ms: int = long(
        "message.timestamp.before.max.ms", default=MAX_LONG, valid=at_least(0)
    )
    """How far a record timestamp may be before the broker time."""
    message_timestamp_difference_max_ms: int = long(
        "message.timestamp.difference.max.ms", default=MAX_LONG, valid=at_least(0)
    )
    """The maximum difference of a record timestamp from the broker time; superseded by `before` and
    `after`."""
    message_timestamp_type: str = string(
        "message.timestamp.type", default="CreateTime", valid=one_of("CreateTime", "LogAppendTime")
    )
    """The timestamp of records: `CreateTime` of the producer or `LogAppendTime` of the broker."""
    min_cleanable_dirty_ratio: float = double(
        "min.cleanable.dirty.ratio", default=0.5, valid=between(0, 1)
    )
    """The minimum ratio of dirty to total log size before a log is cleaned."""
    min_compaction_lag_ms: int = long("min.compaction.lag.ms", default=0, valid=at_least(0))
    """The minimum time that a record stays uncompacted."""
    min_insync_replicas: int = integer("min.insync.replicas", default=1, valid=at_least(1))
    """The minimum number of in-sync replicas for a produce request with acks=all."""
    preallocate: bool = boolean("preallocate", default=False)
    """Whether segment files are preallocated."""
    remote_log_copy_disable: bool = boolean(
        "remote.log.copy.disable",
        default=False,
        effect=rejected("this broker has no tiered storage"),
    )
    """Whether segments are no longer copied to remote storage."""
    remote_log_delete_on_disable: bool = boolean(
        "remote.log.delete.on.disable",
        default=False,
        effect=rejected("this broker has no tiered storage"),
    )
    """Whether remote segments are deleted when remote storage is disabled for the topic."""
    remote_storage_enable: bool = boolean(
        "remote.storage.enable", default=False, effect=rejected("this broker has no tiered storage")
    )
    """Whether tiered storage is enabled for the topic."""
    retention_bytes: int = long("retention.bytes", default=-1)
    """The size of a partition above which old segments are deleted; -1: no limit."""
    retention_ms: int = long("retention.ms", default=7 * DAY_MS, valid=at_least(-1))
    """How long records are kept; -1: for ever."""
    segment_bytes: int = integer("segment.bytes", default=GIB, valid=at_least(14))
    """The size at which a segment is rolled."""
    segment_index_bytes: int = integer("segment.index.bytes", default=10 * MIB, valid=at_least(4))
    """The maximum size of an index file."""
    segment_jitter_ms: int = long("segment.jitter.ms", default=0, valid=at_least(0))
    """The maximum jitter of the roll time, so that not all segments roll at once."""
    segment_ms: int = long("segment.ms", default=7 * DAY_MS, valid=at_least(1))
    """The age at which a segment is rolled."""
    unclean_leader_election_enable: bool = boolean("unclean.leader.election.enable", default=False)
    """Whether an out-of-sync replica may become leader if no in-sync replica is alive."""

    @property
    def timestamp_before_max_ms(self) -> int:
        """How far a record timestamp may be before the broker time, by either setting."""
        newer = self.message_timestamp_before_max_ms
        return self.message_timestamp_difference_max_ms if newer == MAX_LONG else newer

    @property
    def timestamp_after_max_ms(self) -> int:
        """How far a record timestamp may be after the broker time, by either setting."""
        newer = self.message_timestamp_after_max_ms
        return self.message_timestamp_difference_max_ms if newer == MAX_LONG else newer


BROKER_KEYS: Final[Mapping[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.downconversion.enable": "log.message.downconversion.enable",
    "message.format.version": "log.message.format.version",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""The broker setting that a topic setting defaults to; see also `broker_synonyms`."""

_SAME_VALUE: Final = {
    key.replace(".", "_"): broker_key.replace(".", "_") for key, broker_key in BROKER_KEYS.items()
}


def topic_defaults(broker: BrokerConfig) -> dict[str, Any]:
    """The defaults of a topic from the broker's settings, by attribute of TopicConfig."""
    defaults = {name: getattr(broker, of_broker) for name, of_broker in _SAME_VALUE.items()}
    return defaults | {
        "flush_ms": broker.flush_ms,
        "retention_ms": broker.retention_ms,
        "segment_ms": broker.roll_ms,
        "segment_jitter_ms": broker.roll_jitter_ms,
        "message_timestamp_before_max_ms": broker.timestamp_before_max_ms,
        "message_timestamp_after_max_ms": broker.timestamp_after_max_ms,
        # Since Kafka 3.0 the format is always the newest, whatever the setting.
        "message_format_version": TopicConfig.settings["message.format.version"].default,
    }


def validate_topic_config(broker: BrokerConfig, overrides: Mapping[str, str]) -> TopicConfig:
    """The effective settings of a topic with these overrides; refuses what Kafka refuses.

    ApiError (INVALID_CONFIG) for unknown names and contradicting values, ConfigError for an invalid
    value: AlterConfigs has different messages for the two.
    """
    for key in overrides:
        if key not in TopicConfig.settings:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
    config = TopicConfig.parse(overrides, topic_defaults(broker))
    _check_compaction_lag(config)
    _check_remote_storage(config)
    return config


def _check_compaction_lag(config: TopicConfig) -> None:
    lowest, highest = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if lowest > highest:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({lowest}) > "
            f"max.compaction.lag.ms ({highest})",
        )


def _check_remote_storage(config: TopicConfig) -> None:
    """Refuse what Kafka refuses in a cluster with ZooKeeper and without tiered storage."""
    if config.remote_log_delete_on_disable or config.remote_log_copy_disable:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` "
            "under Zookeeper's mode.",
        )
    if config.remote_storage_enable:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
