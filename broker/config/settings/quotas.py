"""Broker settings of quotas and metrics."""

from broker.config.definitions import (
    CLUSTER_WIDE,
    LOW,
    Settings,
    boolean,
    class_name,
    integer,
    long,
    string,
    strings,
)
from broker.config.units import MIB
from broker.config.validators import at_least


class QuotaSettings(Settings):
    """Quotas, and what is measured for them and for metrics."""

    quota_window_num: int = integer(
        "quota.window.num", default=11, valid=at_least(1), importance=LOW
    )
    """Windows over which client quotas are measured."""
    quota_window_size_seconds: int = integer(
        "quota.window.size.seconds", default=1, valid=at_least(1), importance=LOW
    )
    """The length of each of them."""
    replication_quota_window_num: int = integer(
        "replication.quota.window.num", default=11, valid=at_least(1), importance=LOW
    )
    """Windows over which replication quotas are measured."""
    replication_quota_window_size_seconds: int = integer(
        "replication.quota.window.size.seconds", default=1, valid=at_least(1), importance=LOW
    )
    """The length of each of them."""
    alter_log_dirs_replication_quota_window_num: int = integer(
        "alter.log.dirs.replication.quota.window.num", default=11, valid=at_least(1), importance=LOW
    )
    """Windows over which the moving of replicas between directories is measured."""
    alter_log_dirs_replication_quota_window_size_seconds: int = integer(
        "alter.log.dirs.replication.quota.window.size.seconds",
        default=1,
        valid=at_least(1),
        importance=LOW,
    )
    """The length of each of them."""
    controller_quota_window_num: int = integer(
        "controller.quota.window.num", default=11, valid=at_least(1), importance=LOW
    )
    """Windows over which changes of topics are measured."""
    controller_quota_window_size_seconds: int = integer(
        "controller.quota.window.size.seconds", default=1, valid=at_least(1), importance=LOW
    )
    """The length of each of them."""
    client_quota_callback_class: str | None = class_name(
        "client.quota.callback.class", default=None, importance=LOW
    )
    """A class that decides which quota a client has."""
    metric_reporters: tuple[str, ...] = strings(
        "metric.reporters", default=(), importance=LOW, mode=CLUSTER_WIDE
    )
    """Classes that pass metrics on."""
    auto_include_jmx_reporter: bool = boolean(
        "auto.include.jmx.reporter", default=True, importance=LOW
    )
    """Whether metrics are shown over JMX without being asked for."""
    metrics_num_samples: int = integer(
        "metrics.num.samples", default=2, valid=at_least(1), importance=LOW
    )
    """Samples a metric is made of."""
    metrics_sample_window_ms: int = long(
        "metrics.sample.window.ms", default=30_000, valid=at_least(1), importance=LOW
    )
    """How long one sample lasts."""
    metrics_recording_level: str = string("metrics.recording.level", default="INFO", importance=LOW)
    """How much is measured: INFO, DEBUG or TRACE."""
    kafka_metrics_reporters: tuple[str, ...] = strings(
        "kafka.metrics.reporters", default=(), importance=LOW
    )
    """Classes that pass the older metrics on."""
    kafka_metrics_polling_interval_secs: int = integer(
        "kafka.metrics.polling.interval.secs", default=10, valid=at_least(1), importance=LOW
    )
    """How often they look."""
    telemetry_max_bytes: int = integer(
        "telemetry.max.bytes", default=MIB, valid=at_least(1), importance=LOW
    )
    """The largest message of metrics a client may push."""
