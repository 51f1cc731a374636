"""The files of one partition's log: their lifetime, flushing and failures.

The lower half of `PartitionLog`, without records: which files exist, how far they are flushed,
when they are deleted, and what happens when the disk fails.

One lock guards all changes and lookups, because the cleaner, the flusher and retention run in
threads concurrently with the event loop. Files are flushed without it: a flush takes the list of
files under the lock, syncs them without it, and moves the recovery point under it again, unless the
log was truncated meanwhile.
"""

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.log.checkpoints import write_partition_metadata
from broker.log.config import LogConfig
from broker.log.descriptors import DESCRIPTORS, is_out_of_descriptors
from broker.log.environment import LogEnvironment
from broker.log.layout import FUTURE_DIR
from broker.log.leader_epochs import LeaderEpochs
from broker.log.local_log import LocalLog
from broker.log.producer_state import ProducerState
from broker.log.segment import LogSegment
from broker.log.segments import LogSegments
from broker.model import TopicPartition, Uuid

logger = logging.getLogger(__name__)


class LoadedLog(NamedTuple):
    """The result of loading a partition's directory (see `recovery`)."""

    segments: LogSegments
    producer_state: ProducerState
    leader_epochs: LeaderEpochs
    log_start_offset: int
    recovery_point: int
    log_end_offset: int
    topic_id: Uuid | None


class FlushedBatches(NamedTuple):
    """What one group commit has flushed."""

    end_offset: int
    truncations: int
    """`LocalLog.truncations` at its start."""


class LogFiles:
    """The files of one partition's log.

    Field `local`: segments and indexes. Invariant: changed only while the lock is held.
    Field `producer_state`, `leader_epochs`: kept in files of their own beside the segments.
    Field `topic_id`: that of partition.metadata; None until it is assigned.
    Field `last_flush_ms`: when the log was last flushed, for flush.ms.
    Field `flush_is_due`: appends have reached `flush.messages`, so none above `flushed_end_offset`
      may be acknowledged before a flush. Set by appends only, cleared by `mark_batches_flushed`.
    Field `_is_offline`: True after close, delete or a disk failure; every operation fails then, and
      it never becomes False again: a log that returns is loaded from its files.
    """

    def __init__(
        self,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        environment: LogEnvironment,
        loaded: LoadedLog,
    ) -> None:
        self.partition = partition
        self.environment = environment
        self._lock = threading.RLock()
        point = max(loaded.recovery_point, loaded.log_start_offset)
        self.local = LocalLog(
            directory, config, environment, loaded.segments, loaded.log_end_offset, point
        )
        self.producer_state = loaded.producer_state
        self.leader_epochs = loaded.leader_epochs
        self.topic_id = loaded.topic_id
        self.last_flush_ms = environment.clock.now_ms()
        self.flush_is_due = False
        self._is_offline = False

    # --- facts -----------------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        """The partition's directory."""
        return self.local.directory

    @property
    def log_dir(self) -> Path:
        """The log directory that contains the partition's directory."""
        return self.local.directory.parent

    @property
    def is_future(self) -> bool:
        """Whether this is the future replica of a move between log directories."""
        return self.local.directory.name.endswith(FUTURE_DIR)

    @property
    def config(self) -> LogConfig:
        """The topic settings."""
        return self.local.config

    @property
    def segments(self) -> LogSegments:
        """The segments; hold the lock to change them."""
        return self.local.segments

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.local.log_end_offset

    @property
    def flushed_end_offset(self) -> int:
        """While a flush is due: the offset up to which batches may be acknowledged."""
        return max(self.local.flushed_end_offset, self.local.recovery_point)

    @property
    def recovery_point(self) -> int:
        """Everything below is flushed."""
        return self.local.recovery_point

    @property
    def size_in_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return self.local.segments.size_in_bytes

    @property
    def lock(self) -> AbstractContextManager[bool]:
        """Held by the cleaner and retention while they replace segments."""
        return self._lock

    def update_config(self, config: LogConfig) -> None:
        """Apply new settings."""
        with self._lock:
            self.local.update_config(config)

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Write partition.metadata; INCONSISTENT_TOPIC_ID if the log has another topic id."""
        if self.topic_id == topic_id:
            return
        if self.topic_id is not None:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.partition}: the log in {self.directory} is of topic id {self.topic_id}, "
                f"not {topic_id}",
            )
        with self.storing("write the topic id"):
            write_partition_metadata(self.directory, topic_id, self.environment.fs)
        self.topic_id = topic_id

    # --- failures --------------------------------------------------------------------------------

    @contextmanager
    def storing(self, action: str) -> Iterator[None]:
        """Turn an OSError inside into KAFKA_STORAGE_ERROR, and take the log directory offline.

        Except when descriptors are scarce: that is not the disk's fault and passes.
        """
        self._check_online()
        try:
            yield
        except OSError as error:
            raise self._failed(action, error) from error

    def _failed(self, action: str, error: OSError) -> ApiError:
        if is_out_of_descriptors(error):  # back-pressure: the client retries, the log stays online
            DESCRIPTORS.warn(error)
            return ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: could not {action}: {error}"
            )
        self._is_offline = True
        logger.error("could not %s partition=%s: %s", action, self.partition, error)
        self.environment.on_failure(self.log_dir, error)
        return ApiError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: could not {action}: {error}"
        )

    def _check_online(self) -> None:
        if self._is_offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: the log is offline")

    def go_offline(self) -> None:
        """Go offline because the directory failed elsewhere, and release all descriptors.

        Takes no lock: the thread that reports the failure may hold that of another log.
        """
        self._is_offline = True
        for segment in self.segments:
            segment.release()

    # --- deleting and replacing ------------------------------------------------------------------

    def delete_segments(self, segments: Iterable[LogSegment]) -> None:
        """Delete segments and their snapshots; the files are removed after the delay.

        The caller holds the lock and handles OSErrors.
        """
        segments = list(segments)
        self.local.delete_segments(segments)
        self._delete_snapshots(segment.base_offset for segment in segments)

    def replace_segments(self, cleaned: LogSegment, old: list[LogSegment]) -> None:
        """Replace segments by the cleaned one made of them; safe against crashes."""
        with self._lock, self.storing("replace segments"):
            self.local.replace_segments(cleaned, old)
            self._delete_snapshots(segment.base_offset for segment in old)

    def _delete_snapshots(self, offsets: Iterable[int]) -> None:
        """Delete the snapshots of removed segments; a replaced base offset keeps its snapshot."""
        gone = set(offsets).difference(self.segments.base_offsets)
        self.local.delete_later(self.producer_state.mark_snapshots_deleted(gone))

    def delete_pending_files(self) -> None:
        """Remove the `.deleted` files whose delay has passed."""
        with self._lock:
            due = self.local.take_due_deletes()
        if due:
            with self.storing("delete files"):
                for path in due:
                    self.environment.fs.remove(path)

    # --- flushing, closing -----------------------------------------------------------------------

    def flush(self, *, include_active: bool = False) -> None:
        """Flush everything up to the log end offset.

        `include_active` also flushes an empty active segment.
        """
        end = self.log_end_offset
        self._flush(end, end + 1 if include_active else end)

    def maybe_flush(self) -> None:
        """Flush everything if `flush.ms` has passed, or else the segments that were rolled."""
        if self.environment.clock.now_ms() - self.last_flush_ms >= self.config.flush_ms:
            self.flush()
        elif self.local.rolled_at > self.recovery_point:
            self._flush(self.local.rolled_at, self.local.rolled_at)

    def _flush(self, offset: int, upper_bound: int) -> None:
        """Flush the segments below `upper_bound`; `offset` becomes the recovery point."""
        local, fs = self.local, self.environment.fs
        with self._lock, self.storing("flush"):
            self.leader_epochs.flush()
            truncations = local.truncations
            files = local.take_unflushed(upper_bound)
        started_s = perf_counter()
        with self.storing("flush"):
            for file in files:
                fs.sync(file)
            if files:
                fs.sync_directory(self.directory)
        self.environment.flush_times.record(perf_counter() - started_s)
        with self._lock:
            if truncations == local.truncations:
                local.mark_flushed(offset)
                self.last_flush_ms = self.environment.clock.now_ms()

    def flush_if_due(self) -> None:
        """Flush now if appends have reached `flush.messages`; for callers that may block."""
        if self.flush_is_due:
            self.flush()
            with self._lock:
                self.local.flushed_end_offset = self.local.recovery_point
                self.flush_is_due = False

    def flush_batches(self) -> FlushedBatches:
        """Flush the batches up to the log end, for `flush.messages`; may run in any thread.

        One fdatasync, unless a segment was rolled since the last one. Neither the indexes are
        flushed nor does the recovery point move: recovery reads these batches again and rebuilds
        the indexes. Nothing is acknowledged before `mark_batches_flushed`.
        """
        local, fs = self.local, self.environment.fs
        with self._lock, self.storing("flush"):
            flushed = FlushedBatches(local.log_end_offset, local.truncations)
            files, has_new_files = local.take_unflushed_batches()
        started_s = perf_counter()
        with self.storing("flush"):
            for file in files:
                fs.sync_data(file)
            if has_new_files:
                fs.sync_directory(self.directory)
        self.environment.flush_times.record(perf_counter() - started_s)
        return flushed

    def mark_batches_flushed(self, flushed: FlushedBatches) -> None:
        """Note the result of `flush_batches`, unless the log was truncated meanwhile.

        A flush stays due if appends have reached `flush.messages` again.
        """
        with self._lock:
            local = self.local
            if flushed.truncations == local.truncations:
                local.flushed_end_offset = max(local.flushed_end_offset, flushed.end_offset)
            self.flush_is_due = self._has_reached_flush_messages()

    def _has_reached_flush_messages(self) -> bool:
        local = self.local
        flushed_end_offset = max(local.flushed_end_offset, local.recovery_point)
        return local.log_end_offset - flushed_end_offset >= local.config.flush_messages

    def flush_leader_epochs(self) -> None:
        """Write the leader epochs if they have changed."""
        if self.leader_epochs.is_dirty:
            with self._lock, self.storing("write the leader epochs"):
                self.leader_epochs.flush()

    def release_idle_files(self) -> None:
        """Release the descriptors of segments that were not used since the last call."""
        with self._lock:
            self.local.release_idle_files()

    def release_unused_files(self) -> None:
        """Release the descriptors of segments that no client used since the last idle check."""
        with self._lock:
            self.local.release_unused_files()

    def release_files(self) -> None:
        """Release all descriptors; does nothing while another thread uses the log."""
        if self._lock.acquire(blocking=False):
            try:
                self.local.release_files()
            finally:
                self._lock.release()

    def close(self) -> None:
        """Finish the files for a clean shutdown and go offline."""
        with self._lock, self.storing("close"):
            self.producer_state.take_snapshot()
            self.leader_epochs.flush()
            self.local.close()
            self._is_offline = True

    def rename_directory(self, name: str) -> None:
        """Rename the partition's directory (`-delete`, `-future` and back)."""
        with self._lock, self.storing("rename the directory"):
            target = self.directory.with_name(name)
            self.local.rename_directory(target)
            self.producer_state.directory = target
            self.leader_epochs.path = target / self.leader_epochs.path.name

    def delete(self) -> None:
        """Remove the directory and everything in it."""
        with self._lock, self.storing("delete"):
            for segment in self.segments:
                segment.release()
            self.environment.fs.remove_directory(self.directory)
            self._is_offline = True
