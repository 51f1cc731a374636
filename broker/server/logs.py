"""The log manager of a broker, and the periodic work on its logs."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from broker.config import BrokerConfig
from broker.log.config import CleanerConfig, LogConfig, ProducerStateConfig
from broker.log.environment import LogEnvironment
from broker.log.maintenance import LogMaintenance
from broker.log.manager import LogManager
from broker.replica.manager import ReplicaManager
from broker.server.background import Background
from broker.server.platform import Platform

_EPOCHS_FLUSH_S: Final = 2
"""How long a leader epoch may exist in memory only."""

_RELEASE_FILES_S: Final = 60
"""How often files of inactive segments are closed."""


def build_log_manager(
    config: BrokerConfig,
    platform: Platform,
    config_of: Callable[[str], LogConfig],
    on_dir_offline: Callable[[Path], None],
) -> LogManager:
    """The log manager, not yet started. `config_of` is first called when it starts."""
    producer_state = ProducerStateConfig(
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        max_transaction_timeout_ms=config.transaction_max_timeout_ms,
        verify_transactions=config.transaction_partition_verification_enable,
    )
    cleaner = CleanerConfig(
        enable=config.log_cleaner_enable,
        dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
        io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        io_buffer_size=config.log_cleaner_io_buffer_size,
    )
    return LogManager(
        config.log_directories,
        config_of,
        LogEnvironment(fs=platform.fs, clock=platform.clock, producer_state=producer_state),
        cleaner,
        on_dir_offline,
    )


def start_periodic_work(
    background: Background, config: BrokerConfig, logs: LogManager, replicas: ReplicaManager
) -> None:
    """Retention, flushes, cleaning, checkpoints and ISR checks, at the intervals Kafka has."""
    maintenance = LogMaintenance(logs)
    for seconds, work in (
        (config.log_retention_check_interval_ms / 1000, maintenance.delete_expired),
        (config.log_flush_scheduler_interval_ms / 1000, maintenance.flush_dirty),
        (config.log_cleaner_backoff_ms / 1000, maintenance.clean),
        (_RELEASE_FILES_S, maintenance.release_idle_files),
        (_EPOCHS_FLUSH_S, maintenance.flush_leader_epochs),
        (
            config.producer_id_expiration_check_interval_ms / 1000,
            maintenance.remove_expired_producers,
        ),
        (
            config.log_flush_offset_checkpoint_interval_ms / 1000,
            maintenance.checkpoint_recovery_points,
        ),
        (
            config.log_flush_start_offset_checkpoint_interval_ms / 1000,
            maintenance.checkpoint_log_start_offsets,
        ),
        (
            config.replica_high_watermark_checkpoint_interval_ms / 1000,
            replicas.checkpoint_high_watermarks,
        ),
    ):
        background.every(seconds, work)
    background.every(
        config.replica_lag_time_max_ms / 2000, replicas.reevaluate_all, in_thread=False
    )
