"""One log directory: its lock, its identity, its checkpoints, and whether it is online.

A directory is locked by its broker (`.lock`, as Java's FileLock takes it: an fcntl lock), so that
two brokers, ours or Apache Kafka's, cannot open the same files.
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

    Field `is_online`: False from the first disk error on, for the rest of the broker's life.
    Field `was_clean`: whether the last broker here closed everything.
    """

    def __init__(self, path: Path, environment: LogEnvironment) -> None:
        self.path = path
        self.is_online = True
        self.was_clean = False
        self._env = environment
        self._lock: OpenFile | None = None
        self._checkpointing = threading.Lock()
        """Two who write the same checkpoint at the same time spoil each other's file."""
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_start_offsets: dict[TopicPartition, int] = {}

    def open(self) -> None:
        """Create the directory if needed, lock it, read its checkpoints, take its clean marker.

        BlockingIOError if another broker has it; OSError if the disk fails.
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
            logger.warning("ignoring a checkpoint: %s", error)
            return {}

    def partition_directories(self) -> list[tuple[Path, TopicPartition]]:
        """The directories with a partition's log in them, marked ones included."""
        found = ((path, parse_partition_dir(path.name)) for path in sorted(self.path.iterdir()))
        return [(path, partition) for path, partition in found if partition and path.is_dir()]

    def load_from(self, partition: TopicPartition) -> LoadFrom:
        """What the checkpoints say about a partition."""
        return LoadFrom(
            self.was_clean,
            self._log_start_offsets.get(partition, 0),
            self._recovery_points.get(partition, 0),
        )

    def meta_properties(self) -> MetaProperties | None:
        """Who owns the directory; None for a new one."""
        return read_meta_properties(self.path)

    def write_meta_properties(self, properties: MetaProperties) -> None:
        """Write who owns the directory."""
        write_meta_properties(self.path, properties, self._env.clock.now_ms(), self._env.fs)

    def checkpoint_recovery_points(self, logs: Iterable[PartitionLog]) -> None:
        """Write up to which offset each log is surely on the medium."""
        with self._checkpointing:
            points = {log.partition: log.recovery_point for log in logs}
            write_offsets(self.path / RECOVERY_POINT_CHECKPOINT, points, self._env.fs)

    def checkpoint_log_start_offsets(self, logs: Iterable[PartitionLog]) -> None:
        """Write the log start offsets that the names of the segments do not tell."""
        with self._checkpointing:
            offsets = {
                log.partition: log.log_start_offset
                for log in logs
                if log.log_start_offset > log.segments.first.base_offset
            }
            write_offsets(self.path / LOG_START_OFFSET_CHECKPOINT, offsets, self._env.fs)

    def mark_clean(self, broker_epoch: int) -> None:
        """Leave the marker of a clean stop."""
        write_clean_shutdown(self.path, broker_epoch, self._env.fs)

    def unlock(self) -> None:
        """Let another broker have the directory."""
        self._lock = None
