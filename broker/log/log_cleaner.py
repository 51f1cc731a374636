"""Chooses the log to clean next, and pauses cleaning (Kafka's LogCleanerManager).

The log with the highest dirty ratio is cleaned first, if the ratio is above
`min.cleanable.dirty.ratio` or a record waits longer than `max.compaction.lag.ms`. The active
segment, unstable offsets and segments with a record younger than `min.compaction.lag.ms` are not
cleaned.

`cleaner-offset-checkpoint` of the log directory holds the offset up to which each log is clean.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from broker.errors import ApiError
from broker.log.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from broker.log.cleaner import Cleaner, CleanerStats, CleaningAborted
from broker.log.config import CleanerConfig
from broker.log.files import FileSystem
from broker.log.layout import CLEANER_OFFSET_CHECKPOINT
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition

logger = logging.getLogger(__name__)


class LogToClean(NamedTuple):
    """A log with its dirty section; `is_overdue` if a record exceeds max.compaction.lag.ms."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool

    @property
    def cleanable_ratio(self) -> float:
        """The dirty share of what could be cleaned; 0 for an empty log."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is dirty enough, or a record waits too long."""
        if self.is_overdue:
            return self.cleanable_bytes > 0
        return self.cleanable_ratio > self.log.config.min_cleanable_dirty_ratio


def measure(log: PartitionLog, checkpoint: int | None) -> LogToClean:
    """The dirty section of a log that is clean up to `checkpoint`.

    A checkpoint outside of the log (records deleted, log truncated) counts as its start.
    """
    with log.lock:
        now_ms = log.environment.clock.now_ms()
        start = log.log_start_offset
        first_dirty = start if checkpoint is None else checkpoint
        if not start <= first_dirty <= log.log_end_offset:
            first_dirty = start
        limit = max(first_dirty, _uncleanable_offset(log, first_dirty, now_ms))
        uncleanable = log.segments.inactive_from(limit)
        end = uncleanable[0].base_offset if uncleanable else _active_offset(log)
        clean = log.segments.between(-1, first_dirty)
        dirty = log.segments.between(min(first_dirty, end), end)
        return LogToClean(
            log,
            first_dirty,
            end,
            sum(segment.size for segment in clean),
            sum(segment.size for segment in dirty),
            _is_overdue(log, first_dirty, now_ms),
        )


def _active_offset(log: PartitionLog) -> int:
    return log.segments.active.base_offset


def _uncleanable_offset(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
    limit = min(log.last_stable_offset, _active_offset(log))
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments.inactive_from(first_dirty):
            if segment.largest_timestamp > now_ms - lag_ms:
                return min(limit, segment.base_offset)
    return limit


def _is_overdue(log: PartitionLog, first_dirty: int, now_ms: int) -> bool:
    limit_ms = now_ms - log.config.max_compaction_lag_ms
    if limit_ms <= 0:
        return False
    times = (segment.first_batch_timestamp for segment in log.segments.inactive_from(first_dirty))
    return any(time is not None and 0 < time < limit_ms for time in times)


class LogCleaner:
    """Cleans logs one at a time; other threads can pause it for a partition.

    Field `is_enabled`: log.cleaner.enable.
    Field `_cleaning`: the partition being cleaned now.
    Field `_paused`: the paused partitions, and how many callers pause each.
    Field `_uncleanable`: those that failed in a way that a retry does not fix.
    """

    def __init__(self, config: CleanerConfig, fs: FileSystem) -> None:
        self.is_enabled = config.enable
        self._fs = fs
        self._cleaner = Cleaner(config, self._check_aborted)
        self._changed = threading.Condition()
        self._cleaning: TopicPartition | None = None
        self._paused: dict[TopicPartition, int] = {}
        self._uncleanable: set[TopicPartition] = set()
        self.last_stats = CleanerStats()

    def clean_filthiest(self, logs: Iterable[PartitionLog]) -> bool:
        """Clean the dirtiest log; False if no log is due."""
        filthiest = self._grab_filthiest(list(logs))
        if filthiest is None:
            return False
        log = filthiest.log
        try:
            start, end = filthiest.first_dirty_offset, filthiest.first_uncleanable_offset
            cleaned_to, self.last_stats = self._cleaner.clean(log, start, end)
            with log.storing("write the cleaner checkpoint"):
                self.update_checkpoint(log.log_dir, {log.partition: cleaned_to})
        except CleaningAborted:
            logger.info("cleaning aborted partition=%s", log.partition)
        except ApiError as error:
            logger.error("marked uncleanable partition=%s: %s", log.partition, error)
            self._uncleanable.add(log.partition)
        finally:
            self._done_cleaning()
        return True

    def _grab_filthiest(self, logs: list[PartitionLog]) -> LogToClean | None:
        with self._changed:
            checkpoints = self._checkpoints({log.log_dir for log in logs})
            candidates = [
                measure(log, checkpoints.get(log.partition))
                for log in logs
                if log.config.is_compacted
                and log.partition not in self._uncleanable
                and log.partition not in self._paused
            ]
            due = [candidate for candidate in candidates if candidate.is_due]
            if not due:
                return None
            filthiest = max(due, key=lambda candidate: candidate.cleanable_ratio)
            self._cleaning = filthiest.log.partition
            return filthiest

    def _done_cleaning(self) -> None:
        with self._changed:
            self._cleaning = None
            self._changed.notify_all()

    def _check_aborted(self) -> None:
        if self._cleaning in self._paused:
            raise CleaningAborted

    @contextmanager
    def paused(self, partition: TopicPartition) -> Iterator[None]:
        """Pause cleaning of the partition; a running cleaning is aborted and waited for."""
        with self._changed:
            self._pause(partition)
            self._changed.wait_for(lambda: self._cleaning != partition)
        try:
            yield
        finally:
            self._resume(partition)

    @contextmanager
    def paused_if_idle(self, partition: TopicPartition) -> Iterator[bool]:
        """Like `paused`, but if the partition is being cleaned, yields False without pausing."""
        with self._changed:
            is_idle = self._cleaning != partition
            if is_idle:
                self._pause(partition)
        try:
            yield is_idle
        finally:
            if is_idle:
                self._resume(partition)

    def _pause(self, partition: TopicPartition) -> None:
        self._paused[partition] = self._paused.get(partition, 0) + 1

    def _resume(self, partition: TopicPartition) -> None:
        with self._changed:
            self._paused[partition] -= 1
            if not self._paused[partition]:
                del self._paused[partition]

    # --- checkpoints ---------------------------------------------------------------------------

    @staticmethod
    def _checkpoints(log_dirs: Iterable[Path]) -> dict[TopicPartition, int]:
        offsets: dict[TopicPartition, int] = {}
        for log_dir in log_dirs:
            try:
                offsets |= read_offsets(log_dir / CLEANER_OFFSET_CHECKPOINT)
            except CorruptCheckpoint as error:
                logger.warning("cleaning from the start: %s", error)
        return offsets

    def update_checkpoint(
        self, log_dir: Path, changes: Mapping[TopicPartition, int | None]
    ) -> None:
        """Set the offset up to which partitions are clean; None removes one."""
        with self._changed:
            offsets = self._checkpoints([log_dir])
            for partition, offset in changes.items():
                offsets.pop(partition, None)
                if offset is not None:
                    offsets[partition] = offset
            write_offsets(log_dir / CLEANER_OFFSET_CHECKPOINT, offsets, self._fs)

    def lower_checkpoint(self, log: PartitionLog) -> None:
        """Lower the checkpoint to the active segment's base offset after a truncation."""
        limit = log.segments.active.base_offset
        with self._changed:
            known = self._checkpoints([log.log_dir]).get(log.partition)
            if known is not None and known > limit:
                self.update_checkpoint(log.log_dir, {log.partition: limit})

    def move_checkpoint(self, partition: TopicPartition, source: Path, target: Path) -> None:
        """Move the checkpoint of a replica that moved to another log directory."""
        with self._changed:
            offset = self._checkpoints([source]).get(partition)
            if offset is not None:
                self.update_checkpoint(source, {partition: None})
                self.update_checkpoint(target, {partition: offset})
