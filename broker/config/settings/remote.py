"""Broker settings of tiered storage."""

from broker.config.definitions import (
    CLUSTER_WIDE,
    LOW,
    Settings,
    boolean,
    double,
    integer,
    long,
    string,
)
from broker.config.units import GIB
from broker.config.validators import at_least, between, minus_one_or_positive, not_empty
from broker.config.values import MAX_LONG


class RemoteLogSettings(Settings):
    """Tiered storage: understood, so that Kafka's files are; this broker keeps all logs itself."""

    remote_log_storage_system_enable: bool = boolean(
        "remote.log.storage.system.enable", default=False
    )
    """Whether old segments may move to remote storage."""
    remote_log_storage_manager_class_name: str | None = string(
        "remote.log.storage.manager.class.name", default=None, valid=not_empty
    )
    """The class that stores segments remotely."""
    remote_log_storage_manager_class_path: str | None = string(
        "remote.log.storage.manager.class.path", default=None
    )
    """Where that class is found."""
    remote_log_storage_manager_impl_prefix: str = string(
        "remote.log.storage.manager.impl.prefix", default="rsm.config.", valid=not_empty
    )
    """The prefix of the settings that are meant for that class."""
    remote_log_metadata_manager_class_name: str = string(
        "remote.log.metadata.manager.class.name",
        default="org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        valid=not_empty,
    )
    """The class that remembers what is stored remotely."""
    remote_log_metadata_manager_class_path: str | None = string(
        "remote.log.metadata.manager.class.path", default=None
    )
    """Where that class is found."""
    remote_log_metadata_manager_impl_prefix: str = string(
        "remote.log.metadata.manager.impl.prefix", default="rlmm.config.", valid=not_empty
    )
    """The prefix of the settings that are meant for that class."""
    remote_log_metadata_manager_listener_name: str | None = string(
        "remote.log.metadata.manager.listener.name", default=None, valid=not_empty
    )
    """The listener that class connects to."""
    remote_log_metadata_custom_metadata_max_bytes: int = integer(
        "remote.log.metadata.custom.metadata.max.bytes",
        default=128,
        valid=at_least(0),
        importance=LOW,
    )
    """The most bytes a plugin may note about a segment."""
    remote_log_index_file_cache_total_size_bytes: int = long(
        "remote.log.index.file.cache.total.size.bytes",
        default=GIB,
        valid=at_least(1),
        importance=LOW,
        mode=CLUSTER_WIDE,
    )
    """The size of the cache of remote indexes."""
    remote_log_manager_thread_pool_size: int = integer(
        "remote.log.manager.thread.pool.size", default=10, valid=at_least(1)
    )
    """Threads that copy and expire remote segments."""
    remote_log_manager_copier_thread_pool_size: int = integer(
        "remote.log.manager.copier.thread.pool.size", default=-1, valid=minus_one_or_positive
    )
    """Threads that copy segments; -1 is as many as the setting above says."""
    remote_log_manager_expiration_thread_pool_size: int = integer(
        "remote.log.manager.expiration.thread.pool.size", default=-1, valid=minus_one_or_positive
    )
    """Threads that expire segments; -1 is as many as the setting above says."""
    remote_log_manager_task_interval_ms: int = long(
        "remote.log.manager.task.interval.ms", default=30_000, valid=at_least(1), importance=LOW
    )
    """How often they look for work."""
    remote_log_manager_task_retry_backoff_ms: int = long(
        "remote.log.manager.task.retry.backoff.ms",
        default=500,
        valid=at_least(1),
        importance=LOW,
        internal=True,
    )
    """The first pause after a task that failed."""
    remote_log_manager_task_retry_backoff_max_ms: int = long(
        "remote.log.manager.task.retry.backoff.max.ms",
        default=30_000,
        valid=at_least(1),
        importance=LOW,
        internal=True,
    )
    """The longest pause after tasks that failed."""
    remote_log_manager_task_retry_jitter: float = double(
        "remote.log.manager.task.retry.jitter",
        default=0.2,
        valid=between(0, 0.5),
        importance=LOW,
        internal=True,
    )
    """The most by which that pause is varied."""
    remote_log_reader_threads: int = integer(
        "remote.log.reader.threads", default=10, valid=at_least(1)
    )
    """Threads that read remote segments."""
    remote_log_reader_max_pending_tasks: int = integer(
        "remote.log.reader.max.pending.tasks", default=100, valid=at_least(1)
    )
    """Remote reads that may wait."""
    remote_log_manager_copy_max_bytes_per_second: int = long(
        "remote.log.manager.copy.max.bytes.per.second",
        default=MAX_LONG,
        valid=at_least(1),
        mode=CLUSTER_WIDE,
    )
    """What may be copied to remote storage per second."""
    remote_log_manager_copy_quota_window_num: int = integer(
        "remote.log.manager.copy.quota.window.num", default=11, valid=at_least(1)
    )
    """Windows over which copying is measured."""
    remote_log_manager_copy_quota_window_size_seconds: int = integer(
        "remote.log.manager.copy.quota.window.size.seconds", default=1, valid=at_least(1)
    )
    """The length of each of them."""
    remote_log_manager_fetch_max_bytes_per_second: int = long(
        "remote.log.manager.fetch.max.bytes.per.second",
        default=MAX_LONG,
        valid=at_least(1),
        mode=CLUSTER_WIDE,
    )
    """What may be read from remote storage per second."""
    remote_log_manager_fetch_quota_window_num: int = integer(
        "remote.log.manager.fetch.quota.window.num", default=11, valid=at_least(1)
    )
    """Windows over which remote reading is measured."""
    remote_log_manager_fetch_quota_window_size_seconds: int = integer(
        "remote.log.manager.fetch.quota.window.size.seconds", default=1, valid=at_least(1)
    )
    """The length of each of them."""
    remote_fetch_max_wait_ms: int = integer(
        "remote.fetch.max.wait.ms", default=500, valid=at_least(1), mode=CLUSTER_WIDE
    )
    """How long a fetch waits for remote storage."""
    log_local_retention_ms: int = long(
        "log.local.retention.ms", default=-2, valid=at_least(-2), mode=CLUSTER_WIDE
    )
    """How long records stay here once they are remote; -2 is `log.retention.ms`."""
    log_local_retention_bytes: int = long(
        "log.local.retention.bytes", default=-2, valid=at_least(-2), mode=CLUSTER_WIDE
    )
    """The size that stays here once it is remote; -2 is `log.retention.bytes`."""
