"""One log directory: its lock, its meta.properties, its checkpoints, and whether it is online.

The broker locks the directory (`.lock`, an fcntl lock like Java's FileLock), so that two brokers,
ours or Apache Kafka's, cannot open the same files.
"""

import fcntl
import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from broker.log.checkpoints import (
    CorruptCheckpoint,
    MetaProperties,
    read_meta_properties,
    read_offsets,
    take_clean_shutdown,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
)
from broker.log.environment import LogEnvironment
from broker.log.files import OpenFile
from broker.log.layout import (
    LOCK_FILE,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    parse_partition_dir,
)
from broker.log.partition_log import PartitionLog
from broker.log.recovery import LoadFrom
from broker.model import TopicPartition

logger = logging.getLogger(__name__)


class LogDir:
    """A directory of partitions.

    Field `is_online`: False from the first disk error until the broker is restarted.
    Field `was_clean`: whether the previous broker process shut down cleanly.
    """

    def __init__(self, path: Path, environment: LogEnvironment) -> None:
        self.path = path
        self.is_online = True
        self.was_clean = False
        self._env = environment
        self._lock: OpenFile | None = None
        self._checkpointing = threading.Lock()
        """Serializes checkpoint writes: two threads would overwrite each other's temporary file."""
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_start_offsets: dict[TopicPartition, int] = {}

    def open(self) -> None:
        """Create and lock the directory, read its checkpoints, remove the clean-shutdown marker.

        BlockingIOError if another broker has locked it; OSError if the disk fails.
        """
        self._env.fs.make_directory(self.path)
        self._take_lock()
        self.was_clean = take_clean_shutdown(self.path, self._env.fs)
        self._recovery_points = self._read(RECOVERY_POINT_CHECKPOINT)
        self._log_start_offsets = self._read(LOG_START_OFFSET_CHECKPOINT)

    def _take_lock(self) -> None:
        lock = self._env.fs.open_file(self.path / LOCK_FILE, create=True)
        try:
            fcntl.lockf(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            message = f"another broker uses the log directory ({os.strerror(error.errno or 0)})"
            raise BlockingIOError(error.errno, message, str(lock.path)) from error
        self._lock = lock

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self.path / name)
        except CorruptCheckpoint as error:
            logger.warning("ignoring corrupt checkpoint: %s", error)
            return {}

    def partition_directories(self) -> list[tuple[Path, TopicPartition]]:
        """The directories of partitions, including those marked -delete, -future and -stray."""
        found = ((path, parse_partition_dir(path.name)) for path in sorted(self.path.iterdir()))
        return [(path, partition) for path, partition in found if partition and path.is_dir()]

    def load_from(self, partition: TopicPartition) -> LoadFrom:
        """The checkpointed offsets of a partition."""
        return LoadFrom(
            self.was_clean,
            self._log_start_offsets.get(partition, 0),
            self._recovery_points.get(partition, 0),
        )

    def meta_properties(self) -> MetaProperties | None:
        """The directory's meta.properties; None for a new directory."""
        return read_meta_properties(self.path)

    def write_meta_properties(self, properties: MetaProperties) -> None:
        """Write meta.properties."""
        write_meta_properties(self.path, properties, self._env.clock.now_ms(), self._env.fs)

    def checkpoint_recovery_points(self, logs: Iterable[PartitionLog]) -> None:
        """Write `recovery-point-offset-checkpoint`: the offset up to which each log is flushed."""
        with self._checkpointing:
            points = {log.partition: log.recovery_point for log in logs}
            write_offsets(self.path / RECOVERY_POINT_CHECKPOINT, points, self._env.fs)

    def checkpoint_log_start_offsets(self, logs: Iterable[PartitionLog]) -> None:
        """Write the log start offsets that are above the base offset of the first segment."""
        with self._checkpointing:
            offsets = {
                log.partition: log.log_start_offset
                for log in logs
                if log.log_start_offset > log.segments.first.base_offset
            }
            write_offsets(self.path / LOG_START_OFFSET_CHECKPOINT, offsets, self._env.fs)

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the clean-shutdown marker."""
        write_clean_shutdown(self.path, broker_epoch, self._env.fs)

    def unlock(self) -> None:
        """Release the lock."""
        self._lock = None
