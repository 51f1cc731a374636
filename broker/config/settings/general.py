"""General broker settings."""

from typing import Final

from broker.config.definitions import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    Settings,
    boolean,
    class_name,
    fixed,
    integer,
    long,
    no_effect,
    rejected,
    string,
)
from broker.config.units import MIB
from broker.config.validators import at_least, between, gzip_level, one_of

_ONE_LOOP: Final = no_effect("one event loop serves all connections and requests")
_NO_QUEUE: Final = no_effect(
    "each connection has at most one request in progress; there is no queue"
)
_PURGED_AT_ONCE: Final = no_effect("completed operations leave the purgatory at once")


class GeneralSettings(Settings):
    """Identity, request processing, topic creation, start and shutdown."""

    broker_id: int = integer("broker.id", default=-1, importance=HIGH)
    """The id of the broker in the cluster; -1: the cluster assigns one."""
    broker_id_generation_enable: bool = boolean("broker.id.generation.enable", default=True)
    """Whether a broker without an id gets a generated one above `reserved.broker.max.id`."""
    reserved_broker_max_id: int = integer("reserved.broker.max.id", default=1000, valid=at_least(0))
    """The highest `broker.id` that can be configured; generated ids are above it."""
    broker_rack: str | None = string("broker.rack", default=None)
    """The rack or availability zone of the broker, for replica placement and fetch from the closest
    replica."""
    num_network_threads: int = integer(
        "num.network.threads",
        default=3,
        valid=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
        effect=_ONE_LOOP,
    )
    """Threads per listener that read requests from and write responses to sockets."""
    num_io_threads: int = integer(
        "num.io.threads",
        default=8,
        valid=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
        effect=_ONE_LOOP,
    )
    """Threads that process requests, including disk I/O."""
    background_threads: int = integer(
        "background.threads",
        default=10,
        valid=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
        effect=_ONE_LOOP,
    )
    """Threads for background tasks: deletion, checkpoints, expiration."""
    queued_max_requests: int = integer(
        "queued.max.requests", default=500, valid=at_least(1), importance=HIGH, effect=_NO_QUEUE
    )
    """Requests that may be queued before the network threads stop reading."""
    queued_max_request_bytes: int = long("queued.max.request.bytes", default=-1)
    """Memory for requests above 256 KiB; beyond it sockets are not read. -1: 25 % of the RAM."""
    request_timeout_ms: int = integer("request.timeout.ms", default=30_000, importance=HIGH)
    """How long the broker waits for the response to a request it sends to another broker."""
    message_max_bytes: int = integer(
        "message.max.bytes", default=MIB + 12, valid=at_least(0), importance=HIGH, mode=CLUSTER_WIDE
    )
    """The largest record batch that is accepted, after compression; topics can override it."""
    compression_type: str = string(
        "compression.type",
        default="producer",
        valid=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        importance=HIGH,
        mode=CLUSTER_WIDE,
    )
    """The compression codec of topics; `producer` keeps the codec of the producer."""
    compression_gzip_level: int = integer(
        "compression.gzip.level", default=-1, valid=gzip_level, mode=CLUSTER_WIDE
    )
    """The gzip level that the broker compresses with; -1 is the default of the codec."""
    compression_lz4_level: int = integer(
        "compression.lz4.level", default=9, valid=between(1, 17), mode=CLUSTER_WIDE
    )
    """The lz4 level that the broker compresses with."""
    compression_zstd_level: int = integer(
        "compression.zstd.level", default=3, valid=between(-131_072, 22), mode=CLUSTER_WIDE
    )
    """The zstd level that the broker compresses with."""
    auto_create_topics_enable: bool = boolean(
        "auto.create.topics.enable", default=True, importance=HIGH
    )
    """Whether a topic is created when a client requests its metadata or produces to it."""
    delete_topic_enable: bool = boolean("delete.topic.enable", default=True, importance=HIGH)
    """Whether topics can be deleted."""
    num_partitions: int = integer("num.partitions", default=1, valid=at_least(1))
    """The number of partitions of topics that are created without one."""
    controlled_shutdown_enable: bool = boolean("controlled.shutdown.enable", default=True)
    """Whether the broker moves its leaderships to other brokers before it stops."""
    controlled_shutdown_max_retries: int = integer("controlled.shutdown.max.retries", default=3)
    """How often a failed controlled shutdown is retried."""
    controlled_shutdown_retry_backoff_ms: int = long(
        "controlled.shutdown.retry.backoff.ms", default=5000
    )
    """The wait before a controlled shutdown is retried."""
    fetch_max_bytes: int = integer("fetch.max.bytes", default=55 * MIB, valid=at_least(1024))
    """The maximum size of a fetch response."""
    max_incremental_fetch_session_cache_slots: int = integer(
        "max.incremental.fetch.session.cache.slots", default=1000, valid=at_least(0)
    )
    """The maximum number of incremental fetch sessions."""
    max_request_partition_size_limit: int = integer(
        "max.request.partition.size.limit",
        default=2000,
        valid=at_least(1),
        effect=no_effect("only DescribeTopicPartitions of KRaft uses it"),
    )
    """The maximum number of partitions in one response."""
    delete_records_purgatory_purge_interval_requests: int = integer(
        "delete.records.purgatory.purge.interval.requests", default=1, effect=_PURGED_AT_ONCE
    )
    """Completed DeleteRecords requests after which the purgatory is purged."""
    fetch_purgatory_purge_interval_requests: int = integer(
        "fetch.purgatory.purge.interval.requests", default=1000, effect=_PURGED_AT_ONCE
    )
    """Completed fetch requests after which the purgatory is purged."""
    producer_purgatory_purge_interval_requests: int = integer(
        "producer.purgatory.purge.interval.requests", default=1000, effect=_PURGED_AT_ONCE
    )
    """Completed produce requests after which the purgatory is purged."""
    create_topic_policy_class_name: str | None = class_name(
        "create.topic.policy.class.name",
        default=None,
        importance=LOW,
        effect=rejected("this broker loads no policy classes; remove the setting"),
    )
    """The class that validates the creation of topics."""
    alter_config_policy_class_name: str | None = class_name(
        "alter.config.policy.class.name",
        default=None,
        importance=LOW,
        effect=rejected("this broker loads no policy classes; remove the setting"),
    )
    """The class that validates changes of settings."""
    authorizer_class_name: str = string(
        "authorizer.class.name",
        default="",
        importance=LOW,
    )
    """The class that authorizes requests; empty: every client may do everything."""
    early_start_listeners: str | None = string(
        "early.start.listeners",
        default=None,
        importance=HIGH,
        effect=no_effect("all listeners open at the same time"),
    )
    """Listeners that open before the authorizer has loaded."""
    unstable_api_versions_enable: bool = boolean(
        "unstable.api.versions.enable",
        default=False,
        importance=HIGH,
        internal=True,
        effect=fixed("only stable versions are offered"),
    )
    """Whether unstable API versions are offered."""
    unstable_feature_versions_enable: bool = boolean(
        "unstable.feature.versions.enable",
        default=False,
        importance=HIGH,
        internal=True,
        effect=fixed("only stable versions are offered"),
    )
    """Whether unstable feature versions are offered."""
