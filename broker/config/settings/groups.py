"""Broker settings for the group coordinator."""

from typing import Final

from broker.config.definitions import (
    HIGH,
    Settings,
    boolean,
    fixed,
    integer,
    long,
    no_effect,
    short,
    string,
    strings,
)
from broker.config.units import KIB, MIB, MINUTE_MS
from broker.config.validators import at_least, between, one_of, one_of_ignoring_case
from broker.config.values import MAX_INT

_NO_NEW_COORDINATOR: Final = no_effect("this broker has the classic group protocol only")
_NO_SHARE_GROUPS: Final = no_effect("this broker has no share groups")


class GroupSettings(Settings):
    """Consumer groups: sessions, rebalances, and the offsets topic."""

    group_min_session_timeout_ms: int = integer("group.min.session.timeout.ms", default=6000)
    """The minimum session timeout of group members."""
    group_max_session_timeout_ms: int = integer(
        "group.max.session.timeout.ms", default=30 * MINUTE_MS
    )
    """The maximum session timeout of group members."""
    group_initial_rebalance_delay_ms: int = integer(
        "group.initial.rebalance.delay.ms", default=3000
    )
    """How long a new group waits for more members before its first rebalance."""
    group_max_size: int = integer("group.max.size", default=MAX_INT, valid=at_least(1))
    """The maximum number of members of a group."""
    group_coordinator_rebalance_protocols: tuple[str, ...] = strings(
        "group.coordinator.rebalance.protocols",
        default=("classic",),
        valid=one_of("consumer", "classic", "share", "unknown"),
        effect=fixed("this broker has the classic group protocol only"),
    )
    """The enabled rebalance protocols."""
    group_coordinator_threads: int = integer(
        "group.coordinator.threads", default=1, valid=at_least(1), effect=_NO_NEW_COORDINATOR
    )
    """Threads of the new group coordinator."""
    group_coordinator_append_linger_ms: int = integer(
        "group.coordinator.append.linger.ms",
        default=10,
        valid=at_least(0),
        effect=_NO_NEW_COORDINATOR,
    )
    """How long the new group coordinator collects writes before it appends them."""
    group_coordinator_new_enable: bool = boolean(
        "group.coordinator.new.enable",
        default=False,
        internal=True,
        effect=fixed("this broker has the classic group protocol only"),
    )
    """Whether the new group coordinator is enabled."""
    group_consumer_session_timeout_ms: int = integer(
        "group.consumer.session.timeout.ms",
        default=45_000,
        valid=at_least(1),
        effect=_NO_NEW_COORDINATOR,
    )
    """The session timeout of members with the consumer group protocol."""
    group_consumer_min_session_timeout_ms: int = integer(
        "group.consumer.min.session.timeout.ms",
        default=45_000,
        valid=at_least(1),
        effect=_NO_NEW_COORDINATOR,
    )
    """The minimum session timeout with the consumer group protocol."""
    group_consumer_max_session_timeout_ms: int = integer(
        "group.consumer.max.session.timeout.ms",
        default=MINUTE_MS,
        valid=at_least(1),
        effect=_NO_NEW_COORDINATOR,
    )
    """The maximum session timeout with the consumer group protocol."""
    group_consumer_heartbeat_interval_ms: int = integer(
        "group.consumer.heartbeat.interval.ms",
        default=5000,
        valid=at_least(1),
        effect=_NO_NEW_COORDINATOR,
    )
    """The heartbeat interval of members with the consumer group protocol."""
    group_consumer_min_heartbeat_interval_ms: int = integer(
        "group.consumer.min.heartbeat.interval.ms",
        default=5000,
        valid=at_least(1),
        effect=_NO_NEW_COORDINATOR,
    )
    """The minimum heartbeat interval with the consumer group protocol."""
    group_consumer_max_heartbeat_interval_ms: int = integer(
        "group.consumer.max.heartbeat.interval.ms",
        default=15_000,
        valid=at_least(1),
        effect=_NO_NEW_COORDINATOR,
    )
    """The maximum heartbeat interval with the consumer group protocol."""
    group_consumer_max_size: int = integer(
        "group.consumer.max.size", default=MAX_INT, valid=at_least(1), effect=_NO_NEW_COORDINATOR
    )
    """The maximum number of members of a group with the consumer group protocol."""
    group_consumer_assignors: tuple[str, ...] = strings(
        "group.consumer.assignors",
        default=(
            "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
            "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        ),
        effect=_NO_NEW_COORDINATOR,
    )
    """The server-side assignors; the first one is the default."""
    group_consumer_migration_policy: str = string(
        "group.consumer.migration.policy",
        default="disabled",
        valid=one_of_ignoring_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
        internal=True,
        effect=fixed("this broker has the classic group protocol only"),
    )
    """Which groups can be converted between the classic and the consumer protocol."""
    group_share_enable: bool = boolean(
        "group.share.enable",
        default=False,
        internal=True,
        effect=fixed("this broker has no share groups"),
    )
    """Whether share groups are enabled."""
    group_share_delivery_count_limit: int = integer(
        "group.share.delivery.count.limit", default=5, valid=between(2, 10), effect=_NO_SHARE_GROUPS
    )
    """The maximum number of delivery attempts of a record in a share group."""
    group_share_max_groups: int = short(
        "group.share.max.groups", default=10, valid=between(1, 100), effect=_NO_SHARE_GROUPS
    )
    """The maximum number of share groups."""
    group_share_max_size: int = short(
        "group.share.max.size", default=200, valid=between(10, 1000), effect=_NO_SHARE_GROUPS
    )
    """The maximum number of members of a share group."""
    group_share_session_timeout_ms: int = integer(
        "group.share.session.timeout.ms", default=45_000, valid=at_least(1), effect=_NO_SHARE_GROUPS
    )
    """The session timeout of share group members."""
    group_share_min_session_timeout_ms: int = integer(
        "group.share.min.session.timeout.ms",
        default=45_000,
        valid=at_least(1),
        effect=_NO_SHARE_GROUPS,
    )
    """The minimum session timeout of share group members."""
    group_share_max_session_timeout_ms: int = integer(
        "group.share.max.session.timeout.ms",
        default=MINUTE_MS,
        valid=at_least(1),
        effect=_NO_SHARE_GROUPS,
    )
    """The maximum session timeout of share group members."""
    group_share_heartbeat_interval_ms: int = integer(
        "group.share.heartbeat.interval.ms",
        default=5000,
        valid=at_least(1),
        effect=_NO_SHARE_GROUPS,
    )
    """The heartbeat interval of share group members."""
    group_share_min_heartbeat_interval_ms: int = integer(
        "group.share.min.heartbeat.interval.ms",
        default=5000,
        valid=at_least(1),
        effect=_NO_SHARE_GROUPS,
    )
    """The minimum heartbeat interval of share group members."""
    group_share_max_heartbeat_interval_ms: int = integer(
        "group.share.max.heartbeat.interval.ms",
        default=15_000,
        valid=at_least(1),
        effect=_NO_SHARE_GROUPS,
    )
    """The maximum heartbeat interval of share group members."""
    group_share_record_lock_duration_ms: int = integer(
        "group.share.record.lock.duration.ms",
        default=30_000,
        valid=between(1000, 60_000),
        effect=_NO_SHARE_GROUPS,
    )
    """How long a share group member holds the lock of a record."""
    group_share_min_record_lock_duration_ms: int = integer(
        "group.share.min.record.lock.duration.ms",
        default=15_000,
        valid=between(1000, 30_000),
        effect=_NO_SHARE_GROUPS,
    )
    """The minimum lock duration of a record."""
    group_share_max_record_lock_duration_ms: int = integer(
        "group.share.max.record.lock.duration.ms",
        default=MINUTE_MS,
        valid=between(30_000, 3_600_000),
        effect=_NO_SHARE_GROUPS,
    )
    """The maximum lock duration of a record."""
    group_share_partition_max_record_locks: int = integer(
        "group.share.partition.max.record.locks",
        default=200,
        valid=between(100, 10_000),
        effect=_NO_SHARE_GROUPS,
    )
    """The maximum number of locked records per partition."""
    offset_metadata_max_bytes: int = integer(
        "offset.metadata.max.bytes", default=4 * KIB, importance=HIGH
    )
    """The maximum size of the metadata of an offset commit."""
    offsets_topic_num_partitions: int = integer(
        "offsets.topic.num.partitions", default=50, valid=at_least(1), importance=HIGH
    )
    """The number of partitions of the offsets topic; must not change after deployment."""
    offsets_topic_replication_factor: int = short(
        "offsets.topic.replication.factor", default=3, valid=at_least(1), importance=HIGH
    )
    """The replication factor of the offsets topic, which is created when that many brokers are
    alive."""
    offsets_topic_segment_bytes: int = integer(
        "offsets.topic.segment.bytes", default=100 * MIB, valid=at_least(1), importance=HIGH
    )
    """The segment size of the offsets topic; small, so that it is compacted and loaded fast."""
    offsets_topic_compression_codec: int = integer(
        "offsets.topic.compression.codec", default=0, importance=HIGH
    )
    """The number of the compression codec of the offsets topic."""
    offsets_load_buffer_size: int = integer(
        "offsets.load.buffer.size",
        default=5 * MIB,
        valid=at_least(1),
        importance=HIGH,
        effect=no_effect("the partition is read batch by batch"),
    )
    """The read size when offsets are loaded."""
    offsets_retention_minutes: int = integer(
        "offsets.retention.minutes", default=10_080, valid=at_least(1), importance=HIGH
    )
    """How long the offsets of a group without members are kept."""
    offsets_retention_check_interval_ms: int = long(
        "offsets.retention.check.interval.ms",
        default=10 * MINUTE_MS,
        valid=at_least(1),
        importance=HIGH,
    )
    """How often expired offsets are removed."""
    offsets_commit_timeout_ms: int = integer(
        "offsets.commit.timeout.ms", default=5000, valid=at_least(1), importance=HIGH
    )
    """How long an offset commit waits for the replicas of the offsets topic."""
    offsets_commit_required_acks: int = short(
        "offsets.commit.required.acks",
        default=-1,
        importance=HIGH,
        effect=fixed("commits wait for all in-sync replicas"),
    )
    """The acks that an offset commit requires; -1: all in-sync replicas."""
