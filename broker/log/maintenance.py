"""Periodic work on the logs of a broker: retention, flushes, cleaning, checkpoints.

Plain methods without timers: the server calls them from its threads at Kafka's intervals, tests
call them after advancing the clock. A log that fails goes offline and does not affect the others.
"""

import logging
from collections.abc import Callable

from broker.errors import ApiError
from broker.log.manager import LogManager
from broker.log.retention import delete_old_segments

logger = logging.getLogger(__name__)


class LogMaintenance:
    """The periodic work on all logs of a manager, future logs included unless stated otherwise."""

    def __init__(self, logs: LogManager) -> None:
        self._logs = logs

    def flush_dirty(self) -> None:
        """Flush the logs that rolled, or whose `flush.ms` has passed."""
        for log in self._logs.all_logs():
            _guarded(log.maybe_flush)

    def flush_leader_epochs(self) -> None:
        """Write the leader epochs that have changed since the last call."""
        for log in self._logs.all_logs():
            _guarded(log.flush_leader_epochs)

    def delete_expired(self) -> int:
        """Apply retention, remove `.deleted` files and `-delete` directories.

        Returns the number of segments deleted. A log that is being cleaned is left for the next
        run.
        """
        deleted = 0
        for log in self._logs.all_logs():
            with self._logs.cleaner.paused_if_idle(log.partition) as is_idle:
                try:
                    deleted += delete_old_segments(log) if is_idle else 0
                    log.delete_pending_files()
                except ApiError as error:
                    logger.error("retention failed partition=%s: %s", log.partition, error)
            log.release_unused_files()  # retention reads the time index of every log
        for log in self._logs.take_due_deletes():
            _guarded(log.delete)
        return deleted

    def clean(self) -> int:
        """Clean the logs that are due, the dirtiest first; returns how many were cleaned.

        Future logs are not cleaned.
        """
        cleaned = 0
        logs = self._logs
        while logs.cleaner.is_enabled and logs.cleaner.clean_filthiest(logs.logs.values()):
            cleaned += 1
        return cleaned

    def remove_expired_producers(self) -> None:
        """Remove the producers that have expired (producer.id.expiration.ms)."""
        for log in self._logs.all_logs():
            log.remove_expired_producers()

    def release_idle_files(self) -> None:
        """Release the descriptors of segments that were not used since the last call."""
        for log in self._logs.all_logs():
            log.release_idle_files()

    def checkpoint_recovery_points(self) -> None:
        """Write `recovery-point-offset-checkpoint` of every online directory."""
        paths = (log_dir.path for log_dir in self._logs.online_dirs)
        self._logs.checkpoints.write_recovery_points(paths)

    def checkpoint_log_start_offsets(self) -> None:
        """Write `log-start-offset-checkpoint` of every online directory."""
        paths = (log_dir.path for log_dir in self._logs.online_dirs)
        self._logs.checkpoints.write_log_start_offsets(paths)


def _guarded(work: Callable[[], None]) -> None:
    """Run `work`; one log's failure must not keep the others from running."""
    try:
        work()
    except ApiError as error:
        logger.error("background work failed: %s", error)
