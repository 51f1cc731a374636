"""Topic settings, and the broker settings they fall back to.

A topic has few settings of its own; the rest are the broker's, under other names.
"""

from collections.abc import Mapping
from typing import Any, Final

from broker.config.broker import BrokerConfig
from broker.config.definitions import LOW, Settings, boolean, double, integer, long, string, strings
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
    """What holds for one topic. `originals` are the settings the topic has of its own."""

    cleanup_policy: tuple[str, ...] = strings(
        "cleanup.policy", default=("delete",), valid=one_of("compact", "delete")
    )
    """What happens to old segments: `delete`, `compact` or both."""
    compression_type: str = string(
        "compression.type",
        default="producer",
        valid=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    )
    """The codec the topic is stored in; `producer` keeps what the producer chose."""
    compression_gzip_level: int = integer("compression.gzip.level", default=-1, valid=gzip_level)
    """The effort of gzip where the broker compresses; -1 is the codec's own choice."""
    compression_lz4_level: int = integer("compression.lz4.level", default=9, valid=between(1, 17))
    """The effort of lz4 where the broker compresses."""
    compression_zstd_level: int = integer(
        "compression.zstd.level", default=3, valid=between(-131_072, 22)
    )
    """The effort of zstd where the broker compresses."""
    delete_retention_ms: int = long("delete.retention.ms", default=DAY_MS, valid=at_least(0))
    """How long a tombstone stays after compaction, for readers that are still on their way."""
    file_delete_delay_ms: int = long("file.delete.delay.ms", default=MINUTE_MS, valid=at_least(0))
    """How long a segment's files stay after the segment is gone from the log."""
    flush_messages: int = long("flush.messages", default=MAX_LONG, valid=at_least(1))
    """Records after which a partition is forced to disk."""
    flush_ms: int = long("flush.ms", default=MAX_LONG, valid=at_least(0))
    """Age of a record after which its partition is forced to disk."""
    follower_replication_throttled_replicas: tuple[str, ...] = strings(
        "follower.replication.throttled.replicas", default=(), valid=throttled_replicas
    )
    """Replicas throttled where they follow, `partition:broker`; `*` is all of them."""
    index_interval_bytes: int = integer("index.interval.bytes", default=4 * KIB, valid=at_least(0))
    """Bytes of records between two entries of the offset index."""
    leader_replication_throttled_replicas: tuple[str, ...] = strings(
        "leader.replication.throttled.replicas", default=(), valid=throttled_replicas
    )
    """Replicas throttled where they lead, `partition:broker`; `*` is all of them."""
    local_retention_bytes: int = long("local.retention.bytes", default=-2, valid=at_least(-2))
    """The size that stays here once it is remote; -2 is `retention.bytes`."""
    local_retention_ms: int = long("local.retention.ms", default=-2, valid=at_least(-2))
    """How long records stay here once they are remote; -2 is `retention.ms`."""
    max_compaction_lag_ms: int = long("max.compaction.lag.ms", default=MAX_LONG, valid=at_least(1))
    """How long a record may stay uncompacted at most."""
    max_message_bytes: int = integer("max.message.bytes", default=MIB + 12, valid=at_least(0))
    """The largest batch a producer may send, after compression."""
    message_downconversion_enable: bool = boolean(
        "message.downconversion.enable", default=True, importance=LOW
    )
    """Whether old consumers get records converted to the format they know."""
    message_format_version: str = string(
        "message.format.version", default="3.0-IV1", valid=kafka_version
    )
    """The record format that is written; of no effect since 3.0."""
    message_timestamp_after_max_ms: int = long(
        "message.timestamp.after.max.ms", default=MAX_LONG, valid=at_least(0)
    )
    """How far a record's time may lie ahead of the broker's."""
    message_timestamp_before_max_ms: int = long(
        "message.timestamp.before.max.ms", default=MAX_LONG, valid=at_least(0)
    )
    """How far a record's time may lie before the broker's."""
    message_timestamp_difference_max_ms: int = long(
        "message.timestamp.difference.max.ms", default=MAX_LONG, valid=at_least(0)
    )
    """How far a record's time may be from the broker's; the two settings above say more."""
    message_timestamp_type: str = string(
        "message.timestamp.type", default="CreateTime", valid=one_of("CreateTime", "LogAppendTime")
    )
    """Whose time records carry: `CreateTime` the producer's, `LogAppendTime` the broker's."""
    min_cleanable_dirty_ratio: float = double(
        "min.cleanable.dirty.ratio", default=0.5, valid=between(0, 1)
    )
    """The part of a log that must be uncompacted before it is compacted again."""
    min_compaction_lag_ms: int = long("min.compaction.lag.ms", default=0, valid=at_least(0))
    """How long a record stays uncompacted at least."""
    min_insync_replicas: int = integer("min.insync.replicas", default=1, valid=at_least(1))
    """Replicas that must have a record before acks=all is answered."""
    preallocate: bool = boolean("preallocate", default=False)
    """Whether a segment's file has its full size from the beginning."""
    remote_log_copy_disable: bool = boolean("remote.log.copy.disable", default=False)
    """Whether the topic's remote segments are only read from now on."""
    remote_log_delete_on_disable: bool = boolean("remote.log.delete.on.disable", default=False)
    """Whether remote segments go when remote storage is switched off for the topic."""
    remote_storage_enable: bool = boolean("remote.storage.enable", default=False)
    """Whether old segments may move to remote storage."""
    retention_bytes: int = long("retention.bytes", default=-1)
    """The size a partition may have before old segments go; -1 is any size."""
    retention_ms: int = long("retention.ms", default=7 * DAY_MS, valid=at_least(-1))
    """How long records are kept; -1 is for ever."""
    segment_bytes: int = integer("segment.bytes", default=GIB, valid=at_least(14))
    """The size at which a segment is closed and the next one begun."""
    segment_index_bytes: int = integer("segment.index.bytes", default=10 * MIB, valid=at_least(4))
    """The size of an index file."""
    segment_jitter_ms: int = long("segment.jitter.ms", default=0, valid=at_least(0))
    """The most by which the age of a segment is varied, so that not all close at once."""
    segment_ms: int = long("segment.ms", default=7 * DAY_MS, valid=at_least(1))
    """The age at which a segment is closed."""
    unclean_leader_election_enable: bool = boolean("unclean.leader.election.enable", default=False)
    """Whether a replica that lacks records may lead when no other is left."""

    @property
    def timestamp_before_max_ms(self) -> int:
        """How far a record's time may lie before the broker's; the older setting if alone."""
        newer = self.message_timestamp_before_max_ms
        return self.message_timestamp_difference_max_ms if newer == MAX_LONG else newer

    @property
    def timestamp_after_max_ms(self) -> int:
        """How far a record's time may lie ahead of the broker's; the older setting if alone."""
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
"""The broker setting a topic falls back to; `broker_synonyms` has those that count after it."""

_SAME_VALUE: Final = {
    key.replace(".", "_"): broker_key.replace(".", "_") for key, broker_key in BROKER_KEYS.items()
}


def topic_defaults(broker: BrokerConfig) -> dict[str, Any]:
    """The broker's settings as a topic's, by attribute of TopicConfig."""
    defaults = {name: getattr(broker, of_broker) for name, of_broker in _SAME_VALUE.items()}
    return defaults | {
        "flush_ms": broker.flush_ms,
        "retention_ms": broker.retention_ms,
        "segment_ms": broker.roll_ms,
        "segment_jitter_ms": broker.roll_jitter_ms,
        "message_timestamp_before_max_ms": broker.timestamp_before_max_ms,
        "message_timestamp_after_max_ms": broker.timestamp_after_max_ms,
        # Since 3.0 the format is always the newest, whatever the broker was told.
        "message_format_version": TopicConfig.settings["message.format.version"].default,
    }


def validate_topic_config(broker: BrokerConfig, overrides: Mapping[str, str]) -> TopicConfig:
    """What a topic with these settings would have; refuses what Kafka refuses.

    ApiError (INVALID_CONFIG) for names that are unknown and values that contradict each other,
    ConfigError for a value that cannot be used: AlterConfigs words the two differently.
    """
    for key in overrides:
        if key not in TopicConfig.settings:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
    config = TopicConfig.parse(overrides, topic_defaults(broker))
    _check_compaction_lag(config)
    _check_remote_storage(broker, config)
    return config


def _check_compaction_lag(config: TopicConfig) -> None:
    lowest, highest = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if lowest > highest:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({lowest}) > "
            f"max.compaction.lag.ms ({highest})",
        )


def _check_remote_storage(broker: BrokerConfig, config: TopicConfig) -> None:
    if config.remote_log_delete_on_disable or config.remote_log_copy_disable:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` "
            "under Zookeeper's mode.",
        )
    if not config.remote_storage_enable:
        return
    if not broker.remote_log_storage_system_enable:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if "compact" in config.cleanup_policy:
        raise ConfigError("Remote log storage is unsupported for the compacted topics")
