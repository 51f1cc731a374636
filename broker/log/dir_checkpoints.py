"""Writes the checkpoints of all log directories.

A directory whose checkpoint cannot be written goes offline, except when there are too many open
files: then the next run writes it.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from broker.log.log_cleaner import LogCleaner
from broker.log.log_dir import LogDir
from broker.log.partition_log import PartitionLog


class DirCheckpoints:
    """The checkpoints of several directories.

    Field `_logs_in`: gives the logs that are in a directory now.
    Field `_dir_failed`: called with the directory and the error if a write fails.
    """

    def __init__(
        self,
        dirs: Mapping[Path, LogDir],
        logs_in: Callable[[Path], list[PartitionLog]],
        cleaner: LogCleaner,
        dir_failed: Callable[[Path, OSError], None],
    ) -> None:
        self._dirs = dirs
        self._logs_in = logs_in
        self._cleaner = cleaner
        self._dir_failed = dir_failed

    def write_recovery_points(self, paths: Iterable[Path]) -> None:
        """Write `recovery-point-offset-checkpoint` of these directories."""
        for path in paths:
            try:
                self._dirs[path].checkpoint_recovery_points(self._logs_in(path))
            except OSError as error:
                self._dir_failed(path, error)

    def write_log_start_offsets(self, paths: Iterable[Path]) -> None:
        """Write `log-start-offset-checkpoint` of these directories."""
        for path in paths:
            try:
                self._dirs[path].checkpoint_log_start_offsets(self._logs_in(path))
            except OSError as error:
                self._dir_failed(path, error)

    def remove(self, gone: Iterable[PartitionLog], *, are_cleaned: bool = True) -> None:
        """Remove logs from all checkpoints of their directories; future logs are not cleaned."""
        by_dir: dict[Path, list[PartitionLog]] = {}
        for log in gone:
            by_dir.setdefault(log.log_dir, []).append(log)
        for path, logs in by_dir.items():
            compacted = [log for log in logs if are_cleaned and log.config.is_compacted]
            if compacted:
                try:
                    removed = {log.partition: None for log in compacted}
                    self._cleaner.update_checkpoint(path, removed)
                except OSError as error:
                    self._dir_failed(path, error)
                    continue
            self.write_recovery_points([path])
            self.write_log_start_offsets([path])

    def lower_cleaner_offset(self, log: PartitionLog) -> None:
        """Lower the cleaner's checkpoint of a compacted log that was truncated."""
        if log.config.is_compacted and not log.is_future:
            with log.storing("write the cleaner checkpoint"):
                self._cleaner.lower_checkpoint(log)
