"""Broker settings of the group coordinator."""

from broker.config.definitions import HIGH, Settings, boolean, integer, long, short, string, strings
from broker.config.units import KIB, MIB, MINUTE_MS
from broker.config.validators import at_least, between, one_of, one_of_ignoring_case
from broker.config.values import MAX_INT


class GroupSettings(Settings):
    """Consumer groups: sessions, rebalances, and the topic the offsets are kept in."""

    group_min_session_timeout_ms: int = integer("group.min.session.timeout.ms", default=6000)
    """The shortest session a member may ask for."""
    group_max_session_timeout_ms: int = integer(
        "group.max.session.timeout.ms", default=30 * MINUTE_MS
    )
    """The longest session a member may ask for."""
    group_initial_rebalance_delay_ms: int = integer(
        "group.initial.rebalance.delay.ms", default=3000
    )
    """How long a new group waits for more members before its first rebalance."""
    group_max_size: int = integer("group.max.size", default=MAX_INT, valid=at_least(1))
    """Members a group may have."""
    group_coordinator_rebalance_protocols: tuple[str, ...] = strings(
        "group.coordinator.rebalance.protocols",
        default=("classic",),
        valid=one_of("consumer", "classic", "share", "unknown"),
    )
    """The rebalance protocols on offer."""
    group_coordinator_threads: int = integer(
        "group.coordinator.threads", default=1, valid=at_least(1)
    )
    """Threads of the new group coordinator."""
    group_coordinator_append_linger_ms: int = integer(
        "group.coordinator.append.linger.ms", default=10, valid=at_least(0)
    )
    """How long the new group coordinator gathers writes."""
    group_coordinator_new_enable: bool = boolean(
        "group.coordinator.new.enable", default=False, internal=True
    )
    """Whether the new group coordinator is used."""
    group_consumer_session_timeout_ms: int = integer(
        "group.consumer.session.timeout.ms", default=45_000, valid=at_least(1)
    )
    """The session of members under the new consumer protocol."""
    group_consumer_min_session_timeout_ms: int = integer(
        "group.consumer.min.session.timeout.ms", default=45_000, valid=at_least(1)
    )
    """The shortest session under the new consumer protocol."""
    group_consumer_max_session_timeout_ms: int = integer(
        "group.consumer.max.session.timeout.ms", default=MINUTE_MS, valid=at_least(1)
    )
    """The longest session under the new consumer protocol."""
    group_consumer_heartbeat_interval_ms: int = integer(
        "group.consumer.heartbeat.interval.ms", default=5000, valid=at_least(1)
    )
    """How often members are to be heard from under the new consumer protocol."""
    group_consumer_min_heartbeat_interval_ms: int = integer(
        "group.consumer.min.heartbeat.interval.ms", default=5000, valid=at_least(1)
    )
    """The shortest interval of heartbeats under the new consumer protocol."""
    group_consumer_max_heartbeat_interval_ms: int = integer(
        "group.consumer.max.heartbeat.interval.ms", default=15_000, valid=at_least(1)
    )
    """The longest interval of heartbeats under the new consumer protocol."""
    group_consumer_max_size: int = integer(
        "group.consumer.max.size", default=MAX_INT, valid=at_least(1)
    )
    """Members a group may have under the new consumer protocol."""
    group_consumer_assignors: tuple[str, ...] = strings(
        "group.consumer.assignors",
        default=(
            "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
            "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        ),
    )
    """The assignors of the new consumer protocol, the default one first."""
    group_consumer_migration_policy: str = string(
        "group.consumer.migration.policy",
        default="disabled",
        valid=one_of_ignoring_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
        internal=True,
    )
    """Which groups may move between the classic and the new protocol."""
    group_share_enable: bool = boolean("group.share.enable", default=False, internal=True)
    """Whether share groups are offered."""
    group_share_delivery_count_limit: int = integer(
        "group.share.delivery.count.limit", default=5, valid=between(2, 10)
    )
    """How often a record is given out in a share group."""
    group_share_max_groups: int = short("group.share.max.groups", default=10, valid=between(1, 100))
    """Share groups there may be."""
    group_share_max_size: int = short("group.share.max.size", default=200, valid=between(10, 1000))
    """Members a share group may have."""
    group_share_session_timeout_ms: int = integer(
        "group.share.session.timeout.ms", default=45_000, valid=at_least(1)
    )
    """The session of a share group's members."""
    group_share_min_session_timeout_ms: int = integer(
        "group.share.min.session.timeout.ms", default=45_000, valid=at_least(1)
    )
    """The shortest session in a share group."""
    group_share_max_session_timeout_ms: int = integer(
        "group.share.max.session.timeout.ms", default=MINUTE_MS, valid=at_least(1)
    )
    """The longest session in a share group."""
    group_share_heartbeat_interval_ms: int = integer(
        "group.share.heartbeat.interval.ms", default=5000, valid=at_least(1)
    )
    """How often a share group's members are to be heard from."""
    group_share_min_heartbeat_interval_ms: int = integer(
        "group.share.min.heartbeat.interval.ms", default=5000, valid=at_least(1)
    )
    """The shortest interval of heartbeats in a share group."""
    group_share_max_heartbeat_interval_ms: int = integer(
        "group.share.max.heartbeat.interval.ms", default=15_000, valid=at_least(1)
    )
    """The longest interval of heartbeats in a share group."""
    group_share_record_lock_duration_ms: int = integer(
        "group.share.record.lock.duration.ms", default=30_000, valid=between(1000, 60_000)
    )
    """How long a record is held for the member that has it."""
    group_share_min_record_lock_duration_ms: int = integer(
        "group.share.min.record.lock.duration.ms", default=15_000, valid=between(1000, 30_000)
    )
    """The shortest time a record may be held for a member."""
    group_share_max_record_lock_duration_ms: int = integer(
        "group.share.max.record.lock.duration.ms",
        default=MINUTE_MS,
        valid=between(30_000, 3_600_000),
    )
    """The longest time a record may be held for a member."""
    group_share_partition_max_record_locks: int = integer(
        "group.share.partition.max.record.locks", default=200, valid=between(100, 10_000)
    )
    """Records of a partition that may be held at the same time."""
    offset_metadata_max_bytes: int = integer(
        "offset.metadata.max.bytes", default=4 * KIB, importance=HIGH
    )
    """The most bytes of text that may be committed with an offset."""
    offsets_topic_num_partitions: int = integer(
        "offsets.topic.num.partitions", default=50, valid=at_least(1), importance=HIGH
    )
    """Partitions of the offsets topic; not to be changed later."""
    offsets_topic_replication_factor: int = short(
        "offsets.topic.replication.factor", default=3, valid=at_least(1), importance=HIGH
    )
    """Replicas of the offsets topic; it waits for as many brokers."""
    offsets_topic_segment_bytes: int = integer(
        "offsets.topic.segment.bytes", default=100 * MIB, valid=at_least(1), importance=HIGH
    )
    """Segment size of the offsets topic; small, so that it loads fast."""
    offsets_topic_compression_codec: int = integer(
        "offsets.topic.compression.codec", default=0, importance=HIGH
    )
    """The codec of the offsets topic, by its number."""
    offsets_load_buffer_size: int = integer(
        "offsets.load.buffer.size", default=5 * MIB, valid=at_least(1), importance=HIGH
    )
    """Bytes read at a time while offsets are loaded."""
    offsets_retention_minutes: int = integer(
        "offsets.retention.minutes", default=10_080, valid=at_least(1), importance=HIGH
    )
    """How long offsets of a group without members are kept."""
    offsets_retention_check_interval_ms: int = long(
        "offsets.retention.check.interval.ms",
        default=10 * MINUTE_MS,
        valid=at_least(1),
        importance=HIGH,
    )
    """How often expired offsets are looked for."""
    offsets_commit_timeout_ms: int = integer(
        "offsets.commit.timeout.ms", default=5000, valid=at_least(1), importance=HIGH
    )
    """How long a commit waits for the replicas of the offsets topic."""
    offsets_commit_required_acks: int = short(
        "offsets.commit.required.acks", default=-1, importance=HIGH
    )
    """The acks a commit needs; -1 is all of them."""
