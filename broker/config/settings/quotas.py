"""Broker settings for quotas and metrics."""

from typing import Final

from broker.config.definitions import (
    CLUSTER_WIDE,
    LOW,
    Settings,
    boolean,
    class_name,
    integer,
    long,
    no_effect,
    rejected,
    string,
    strings,
)
from broker.config.units import MIB
from broker.config.validators import at_least

_NO_METRICS: Final = no_effect("this broker has no JMX metrics and loads no reporters")


class QuotaSettings(Settings):
    """Quotas and metrics."""

    quota_window_num: int = integer(
        "quota.window.num", default=11, valid=at_least(1), importance=LOW
    )
    """The number of samples of client quotas."""
    quota_window_size_seconds: int = integer(
        "quota.window.size.seconds", default=1, valid=at_least(1), importance=LOW
    )
    """The duration of a sample of client quotas."""
    replication_quota_window_num: int = integer(
        "replication.quota.window.num", default=11, valid=at_least(1), importance=LOW
    )
    """The number of samples of replication quotas."""
    replication_quota_window_size_seconds: int = integer(
        "replication.quota.window.size.seconds", default=1, valid=at_least(1), importance=LOW
    )
    """The duration of a sample of replication quotas."""
    alter_log_dirs_replication_quota_window_num: int = integer(
        "alter.log.dirs.replication.quota.window.num",
        default=11,
        valid=at_least(1),
        importance=LOW,
        effect=no_effect("the rate is limited without windows"),
    )
    """The number of samples of the quota for moves between log directories."""
    alter_log_dirs_replication_quota_window_size_seconds: int = integer(
        "alter.log.dirs.replication.quota.window.size.seconds",
        default=1,
        valid=at_least(1),
        importance=LOW,
        effect=no_effect("the rate is limited without windows"),
    )
    """The duration of a sample of the quota for moves between log directories."""
    controller_quota_window_num: int = integer(
        "controller.quota.window.num",
        default=11,
        valid=at_least(1),
        importance=LOW,
    )
    """The number of samples of the controller mutation quota."""
    controller_quota_window_size_seconds: int = integer(
        "controller.quota.window.size.seconds",
        default=1,
        valid=at_least(1),
        importance=LOW,
    )
    """The duration of a sample of the controller mutation quota."""
    client_quota_callback_class: str | None = class_name(
        "client.quota.callback.class",
        default=None,
        importance=LOW,
        effect=rejected("this broker loads no classes; remove the setting"),
    )
    """The class that determines the quotas of clients."""
    metric_reporters: tuple[str, ...] = strings(
        "metric.reporters", default=(), importance=LOW, mode=CLUSTER_WIDE, effect=_NO_METRICS
    )
    """Classes of metric reporters."""
    auto_include_jmx_reporter: bool = boolean(
        "auto.include.jmx.reporter", default=True, importance=LOW, effect=_NO_METRICS
    )
    """Whether the JMX reporter is included by default."""
    metrics_num_samples: int = integer(
        "metrics.num.samples", default=2, valid=at_least(1), importance=LOW, effect=_NO_METRICS
    )
    """The number of samples of a metric."""
    metrics_sample_window_ms: int = long(
        "metrics.sample.window.ms",
        default=30_000,
        valid=at_least(1),
        importance=LOW,
        effect=_NO_METRICS,
    )
    """The duration of a sample of a metric."""
    metrics_recording_level: str = string(
        "metrics.recording.level", default="INFO", importance=LOW, effect=_NO_METRICS
    )
    """The recording level of metrics: INFO, DEBUG or TRACE."""
    kafka_metrics_reporters: tuple[str, ...] = strings(
        "kafka.metrics.reporters", default=(), importance=LOW, effect=_NO_METRICS
    )
    """Classes of Yammer metric reporters."""
    kafka_metrics_polling_interval_secs: int = integer(
        "kafka.metrics.polling.interval.secs",
        default=10,
        valid=at_least(1),
        importance=LOW,
        effect=_NO_METRICS,
    )
    """The polling interval of the Yammer metric reporters."""
    telemetry_max_bytes: int = integer(
        "telemetry.max.bytes",
        default=MIB,
        valid=at_least(1),
        importance=LOW,
        effect=no_effect("this broker does not accept telemetry of clients"),
    )
    """The maximum size of a telemetry message of a client."""
