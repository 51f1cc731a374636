"""Broker settings of no other room."""

from broker.config.definitions import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    Settings,
    boolean,
    class_name,
    integer,
    long,
    string,
)
from broker.config.units import MIB
from broker.config.validators import at_least, between, gzip_level, one_of


class GeneralSettings(Settings):
    """Who this broker is, how it works through requests, how it starts and stops."""

    broker_id: int = integer("broker.id", default=-1, importance=HIGH)
    """The broker's id in the cluster; -1 lets the cluster hand one out."""
    broker_id_generation_enable: bool = boolean("broker.id.generation.enable", default=True)
    """Whether a broker without an id is given one above `reserved.broker.max.id`."""
    reserved_broker_max_id: int = integer("reserved.broker.max.id", default=1000, valid=at_least(0))
    """The highest id that people may choose; generated ids lie above it."""
    broker_rack: str | None = string("broker.rack", default=None)
    """The rack or zone the broker stands in, for spreading replicas and reading nearby."""
    num_network_threads: int = integer(
        "num.network.threads", default=3, valid=at_least(1), importance=HIGH, mode=CLUSTER_WIDE
    )
    """Threads that read from and write to sockets, per listener."""
    num_io_threads: int = integer(
        "num.io.threads", default=8, valid=at_least(1), importance=HIGH, mode=CLUSTER_WIDE
    )
    """Threads that carry out requests, disk access included."""
    background_threads: int = integer(
        "background.threads", default=10, valid=at_least(1), importance=HIGH, mode=CLUSTER_WIDE
    )
    """Threads for the chores of the broker: deletion, checkpoints, expiry."""
    queued_max_requests: int = integer(
        "queued.max.requests", default=500, valid=at_least(1), importance=HIGH
    )
    """Requests that may wait for a thread before sockets are no longer read."""
    queued_max_request_bytes: int = long("queued.max.request.bytes", default=-1)
    """Bytes of requests that may wait before sockets are no longer read; -1 is no limit."""
    request_timeout_ms: int = integer("request.timeout.ms", default=30_000, importance=HIGH)
    """How long the broker waits for the answer to a request of its own."""
    message_max_bytes: int = integer(
        "message.max.bytes", default=MIB + 12, valid=at_least(0), importance=HIGH, mode=CLUSTER_WIDE
    )
    """The largest batch a producer may send, after compression; a topic may differ."""
    compression_type: str = string(
        "compression.type",
        default="producer",
        valid=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        importance=HIGH,
        mode=CLUSTER_WIDE,
    )
    """The codec topics are stored in; `producer` keeps what the producer chose."""
    compression_gzip_level: int = integer(
        "compression.gzip.level", default=-1, valid=gzip_level, mode=CLUSTER_WIDE
    )
    """The effort of gzip where the broker compresses; -1 is the codec's own choice."""
    compression_lz4_level: int = integer(
        "compression.lz4.level", default=9, valid=between(1, 17), mode=CLUSTER_WIDE
    )
    """The effort of lz4 where the broker compresses."""
    compression_zstd_level: int = integer(
        "compression.zstd.level", default=3, valid=between(-131_072, 22), mode=CLUSTER_WIDE
    )
    """The effort of zstd where the broker compresses."""
    auto_create_topics_enable: bool = boolean(
        "auto.create.topics.enable", default=True, importance=HIGH
    )
    """Whether a topic comes into being when a client first asks for it."""
    delete_topic_enable: bool = boolean("delete.topic.enable", default=True, importance=HIGH)
    """Whether topics can be deleted at all."""
    num_partitions: int = integer("num.partitions", default=1, valid=at_least(1))
    """Partitions of a topic that is created without saying how many."""
    controlled_shutdown_enable: bool = boolean("controlled.shutdown.enable", default=True)
    """Whether leadership is handed over before the broker stops."""
    controlled_shutdown_max_retries: int = integer("controlled.shutdown.max.retries", default=3)
    """How often the handing over of leadership is tried."""
    controlled_shutdown_retry_backoff_ms: int = long(
        "controlled.shutdown.retry.backoff.ms", default=5000
    )
    """The pause before the handing over is tried again."""
    fetch_max_bytes: int = integer("fetch.max.bytes", default=55 * MIB, valid=at_least(1024))
    """The most bytes that one fetch is answered with."""
    max_incremental_fetch_session_cache_slots: int = integer(
        "max.incremental.fetch.session.cache.slots", default=1000, valid=at_least(0)
    )
    """Incremental fetch sessions that are remembered at the same time."""
    max_request_partition_size_limit: int = integer(
        "max.request.partition.size.limit", default=2000, valid=at_least(1)
    )
    """The most partitions that one request may ask about or be answered with."""
    delete_records_purgatory_purge_interval_requests: int = integer(
        "delete.records.purgatory.purge.interval.requests", default=1
    )
    """Finished DeleteRecords that gather before they are swept out of the waiting room."""
    fetch_purgatory_purge_interval_requests: int = integer(
        "fetch.purgatory.purge.interval.requests", default=1000
    )
    """Finished fetches that gather before they are swept out of the waiting room."""
    producer_purgatory_purge_interval_requests: int = integer(
        "producer.purgatory.purge.interval.requests", default=1000
    )
    """Finished produces that gather before they are swept out of the waiting room."""
    create_topic_policy_class_name: str | None = class_name(
        "create.topic.policy.class.name", default=None, importance=LOW
    )
    """A class that may refuse the creation of topics."""
    alter_config_policy_class_name: str | None = class_name(
        "alter.config.policy.class.name", default=None, importance=LOW
    )
    """A class that may refuse changes of settings."""
    authorizer_class_name: str = string("authorizer.class.name", default="", importance=LOW)
    """The class that decides who may do what; empty lets everyone do everything."""
    early_start_listeners: str | None = string(
        "early.start.listeners", default=None, importance=HIGH
    )
    """Listeners that open before the authorizer is ready."""
    unstable_api_versions_enable: bool = boolean(
        "unstable.api.versions.enable", default=False, importance=HIGH, internal=True
    )
    """Whether API versions still in the making are offered."""
    unstable_feature_versions_enable: bool = boolean(
        "unstable.feature.versions.enable", default=False, importance=HIGH, internal=True
    )
    """Whether feature versions still in the making are offered."""
