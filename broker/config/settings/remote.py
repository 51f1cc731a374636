"""Broker settings for tiered storage."""

from typing import Final

from broker.config.definitions import (
    CLUSTER_WIDE,
    LOW,
    Settings,
    boolean,
    double,
    integer,
    long,
    no_effect,
    rejected,
    string,
)
from broker.config.units import GIB
from broker.config.validators import at_least, between, minus_one_or_positive, not_empty
from broker.config.values import MAX_LONG

_NO_TIERED_STORAGE: Final = no_effect("this broker has no tiered storage")


class RemoteLogSettings(Settings):
    """Tiered storage: declared so that Kafka's files can be read; not supported here."""

    remote_log_storage_system_enable: bool = boolean(
        "remote.log.storage.system.enable",
        default=False,
        effect=rejected("this broker has no tiered storage; set it to false"),
    )
    """Whether tiered storage is enabled."""
    remote_log_storage_manager_class_name: str | None = string(
        "remote.log.storage.manager.class.name",
        default=None,
        valid=not_empty,
        effect=_NO_TIERED_STORAGE,
    )
    """The class of the remote storage manager."""
    remote_log_storage_manager_class_path: str | None = string(
        "remote.log.storage.manager.class.path", default=None, effect=_NO_TIERED_STORAGE
    )
    """The class path of the remote storage manager."""
    remote_log_storage_manager_impl_prefix: str = string(
        "remote.log.storage.manager.impl.prefix",
        default="rsm.config.",
        valid=not_empty,
        effect=_NO_TIERED_STORAGE,
    )
    """The prefix of settings for the remote storage manager."""
    remote_log_metadata_manager_class_name: str = string(
        "remote.log.metadata.manager.class.name",
        default="org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        valid=not_empty,
        effect=_NO_TIERED_STORAGE,
    )
    """The class of the remote log metadata manager."""
    remote_log_metadata_manager_class_path: str | None = string(
        "remote.log.metadata.manager.class.path", default=None, effect=_NO_TIERED_STORAGE
    )
    """The class path of the remote log metadata manager."""
    remote_log_metadata_manager_impl_prefix: str = string(
        "remote.log.metadata.manager.impl.prefix",
        default="rlmm.config.",
        valid=not_empty,
        effect=_NO_TIERED_STORAGE,
    )
    """The prefix of settings for the remote log metadata manager."""
    remote_log_metadata_manager_listener_name: str | None = string(
        "remote.log.metadata.manager.listener.name",
        default=None,
        valid=not_empty,
        effect=_NO_TIERED_STORAGE,
    )
    """The listener that the remote log metadata manager connects to."""
    remote_log_metadata_custom_metadata_max_bytes: int = integer(
        "remote.log.metadata.custom.metadata.max.bytes",
        default=128,
        valid=at_least(0),
        importance=LOW,
        effect=_NO_TIERED_STORAGE,
    )
    """The maximum size of the custom metadata of a remote segment."""
    remote_log_index_file_cache_total_size_bytes: int = long(
        "remote.log.index.file.cache.total.size.bytes",
        default=GIB,
        valid=at_least(1),
        importance=LOW,
        mode=CLUSTER_WIDE,
        effect=_NO_TIERED_STORAGE,
    )
    """The size of the cache of remote index files."""
    remote_log_manager_thread_pool_size: int = integer(
        "remote.log.manager.thread.pool.size",
        default=10,
        valid=at_least(1),
        effect=_NO_TIERED_STORAGE,
    )
    """Threads that copy and expire remote segments."""
    remote_log_manager_copier_thread_pool_size: int = integer(
        "remote.log.manager.copier.thread.pool.size",
        default=-1,
        valid=minus_one_or_positive,
        effect=_NO_TIERED_STORAGE,
    )
    """Threads that copy segments; -1: `remote.log.manager.thread.pool.size`."""
    remote_log_manager_expiration_thread_pool_size: int = integer(
        "remote.log.manager.expiration.thread.pool.size",
        default=-1,
        valid=minus_one_or_positive,
        effect=_NO_TIERED_STORAGE,
    )
    """Threads that expire segments; -1: `remote.log.manager.thread.pool.size`."""
    remote_log_manager_task_interval_ms: int = long(
        "remote.log.manager.task.interval.ms",
        default=30_000,
        valid=at_least(1),
        importance=LOW,
        effect=_NO_TIERED_STORAGE,
    )
    """The interval of copy and expiration tasks."""
    remote_log_manager_task_retry_backoff_ms: int = long(
        "remote.log.manager.task.retry.backoff.ms",
        default=500,
        valid=at_least(1),
        importance=LOW,
        internal=True,
        effect=_NO_TIERED_STORAGE,
    )
    """The initial wait after a failed task."""
    remote_log_manager_task_retry_backoff_max_ms: int = long(
        "remote.log.manager.task.retry.backoff.max.ms",
        default=30_000,
        valid=at_least(1),
        importance=LOW,
        internal=True,
        effect=_NO_TIERED_STORAGE,
    )
    """The maximum wait after failed tasks."""
    remote_log_manager_task_retry_jitter: float = double(
        "remote.log.manager.task.retry.jitter",
        default=0.2,
        valid=between(0, 0.5),
        importance=LOW,
        internal=True,
        effect=_NO_TIERED_STORAGE,
    )
    """The jitter of that wait."""
    remote_log_reader_threads: int = integer(
        "remote.log.reader.threads", default=10, valid=at_least(1), effect=_NO_TIERED_STORAGE
    )
    """Threads that read remote segments."""
    remote_log_reader_max_pending_tasks: int = integer(
        "remote.log.reader.max.pending.tasks",
        default=100,
        valid=at_least(1),
        effect=_NO_TIERED_STORAGE,
    )
    """The maximum number of queued remote reads."""
    remote_log_manager_copy_max_bytes_per_second: int = long(
        "remote.log.manager.copy.max.bytes.per.second",
        default=MAX_LONG,
        valid=at_least(1),
        mode=CLUSTER_WIDE,
        effect=_NO_TIERED_STORAGE,
    )
    """The maximum rate of copying to remote storage."""
    remote_log_manager_copy_quota_window_num: int = integer(
        "remote.log.manager.copy.quota.window.num",
        default=11,
        valid=at_least(1),
        effect=_NO_TIERED_STORAGE,
    )
    """The number of samples of the copy quota."""
    remote_log_manager_copy_quota_window_size_seconds: int = integer(
        "remote.log.manager.copy.quota.window.size.seconds",
        default=1,
        valid=at_least(1),
        effect=_NO_TIERED_STORAGE,
    )
    """The duration of a sample of the copy quota."""
    remote_log_manager_fetch_max_bytes_per_second: int = long(
        "remote.log.manager.fetch.max.bytes.per.second",
        default=MAX_LONG,
        valid=at_least(1),
        mode=CLUSTER_WIDE,
        effect=_NO_TIERED_STORAGE,
    )
    """The maximum rate of reading from remote storage."""
    remote_log_manager_fetch_quota_window_num: int = integer(
        "remote.log.manager.fetch.quota.window.num",
        default=11,
        valid=at_least(1),
        effect=_NO_TIERED_STORAGE,
    )
    """The number of samples of the fetch quota."""
    remote_log_manager_fetch_quota_window_size_seconds: int = integer(
        "remote.log.manager.fetch.quota.window.size.seconds",
        default=1,
        valid=at_least(1),
        effect=_NO_TIERED_STORAGE,
    )
    """The duration of a sample of the fetch quota."""
    remote_fetch_max_wait_ms: int = integer(
        "remote.fetch.max.wait.ms",
        default=500,
        valid=at_least(1),
        mode=CLUSTER_WIDE,
        effect=_NO_TIERED_STORAGE,
    )
    """How long a fetch waits for remote storage."""
    log_local_retention_ms: int = long(
        "log.local.retention.ms",
        default=-2,
        valid=at_least(-2),
        mode=CLUSTER_WIDE,
        effect=_NO_TIERED_STORAGE,
    )
    """How long segments are kept locally after they are remote; -2: `log.retention.ms`."""
    log_local_retention_bytes: int = long(
        "log.local.retention.bytes",
        default=-2,
        valid=at_least(-2),
        mode=CLUSTER_WIDE,
        effect=_NO_TIERED_STORAGE,
    )
    """The local size of a partition whose segments are remote; -2: `log.retention.bytes`."""
