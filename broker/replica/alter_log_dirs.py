"""Moves replicas from one log directory to another (KIP-113).

A *future* log in the other directory copies the current log, in a thread, while clients continue to
use the current one. When only the last bytes are missing, they are copied on the event loop, where
no append can interfere, and the future log replaces the current one. The old files are deleted
after `file.delete.delay.ms`. After a restart the move continues from the end of the future log.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.log.append import UnexpectedAppendOffset
from broker.log.layout import FUTURE_DIR
from broker.log.manager import LogManager
from broker.log.offsets import FetchIsolation
from broker.log.partition_log import PartitionLog
from broker.log.truncation import truncate_fully_and_start_at, truncate_to
from broker.model import TopicPartition
from broker.replica.partition import Partition
from broker.replica.reevaluation import Event
from broker.replica.throttle import UNLIMITED, Rate

logger = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 1 << 20
_MAX_DIR_NAME: Final = 255
_UUID_LENGTH: Final = 32


class ReplicaAlterLogDirsManager:
    """The moves in progress.

    Field `_tasks`: one per future log. Invariant: a partition with a task has a future log, until
    the task ends.
    Field `preferred`: the log directory in which to create a partition that is not here yet.
    """

    def __init__(self, logs: LogManager, partitions: Mapping[TopicPartition, Partition]) -> None:
        self._logs = logs
        self._partitions = partitions
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self.preferred: dict[TopicPartition, Path] = {}
        self.limit = UNLIMITED
        """Bytes per second of all moves: `replica.alter.log.dirs.io.max.bytes.per.second`."""
        self._rate = Rate()

    def alter(self, name: TopicPartition, destination: Path) -> None:
        """Move a replica to `destination`, unless it is there; cancels any other move of it.

        REPLICA_NOT_AVAILABLE for a partition that is not here; it will be created there.
        """
        _check_length(name)
        self._check_online(destination)
        future = self._logs.get(name, is_future=True)
        if future is not None and future.log_dir != destination:
            self.cancel(name)
        partition = self._partitions.get(name)
        if partition is None:
            self.preferred[name] = destination
            raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{name} has no replica here")
        if partition.log.log_dir != destination:
            self._logs.get_or_create(name, partition.topic_id, is_future=True, log_dir=destination)
            self.resume(partition)

    def _check_online(self, destination: Path) -> None:
        if destination in self._logs.offline_dirs:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{destination} is offline")
        if destination not in (log_dir.path for log_dir in self._logs.online_dirs):
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{destination} is not a log directory")

    def resume(self, partition: Partition) -> None:
        """Continue a move that an earlier run of the broker began, unless it is in progress."""
        future = self._logs.get(partition.name, is_future=True)
        if future is None or partition.name in self._tasks:
            return
        # Before anything is appended: the current log may have lost its end in a crash, and the
        # future log must lose it too.
        truncate_to(future, partition.log.log_end_offset)
        task = asyncio.get_running_loop().create_task(self._move(partition, future))
        self._tasks[partition.name] = task
        task.add_done_callback(lambda _: self._tasks.pop(partition.name, None))

    def cancel(self, name: TopicPartition) -> None:
        """Cancel a move, if there is one, and delete the future log."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
        if self._logs.get(name, is_future=True) is not None:
            self._logs.delete(name, is_future=True)

    async def stop(self) -> None:
        """Interrupt every move; they continue after a restart."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _move(self, partition: Partition, future: PartitionLog) -> None:
        name, current = partition.name, partition.log
        try:
            with ExitStack() as cleaning:
                pause = self._logs.cleaner.paused(name)
                await asyncio.to_thread(cleaning.enter_context, pause)
                while copied := await asyncio.to_thread(_copy_chunk, current, future):
                    await self._throttle(copied)
                await asyncio.to_thread(future.flush)
                # From here to the replacement on the event loop, so that nothing is appended.
                while _copy_chunk(current, future):
                    pass
                self._logs.replace_current_with_future(name)
        except ApiError as error:
            logger.error("cannot move replica partition=%s: %s", name, error)
            return
        partition.log = future
        partition.reevaluate(Event.LOG_REPLACED)
        logger.info("moved replica partition=%s dir=%s", name, future.log_dir)

    async def _throttle(self, num_bytes: int) -> None:
        """Sleep until the rate of all moves together is within the limit."""
        now_s = asyncio.get_running_loop().time()
        self._rate.record(num_bytes, now_s)
        await asyncio.sleep(self._rate.seconds_above(self.limit, now_s))


def _check_length(name: TopicPartition) -> None:
    """INVALID_TOPIC_EXCEPTION if the name of a future log's directory would be too long."""
    if len(f"{name}.{FUTURE_DIR}") + _UUID_LENGTH > _MAX_DIR_NAME:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")


def _copy_chunk(current: PartitionLog, future: PartitionLog) -> int:
    """Copy the next bytes to the future log; returns their number, 0 if none were left.

    The current log is locked meanwhile. A follower may have to truncate both logs, and what it
    truncates in one must not be copied to the other afterwards.
    """
    with current.lock:
        num_bytes = _copy(current, future)
    future.flush_if_due()
    return num_bytes


def _copy(current: PartitionLog, future: PartitionLog) -> int:
    if future.log_end_offset < current.log_start_offset:
        truncate_fully_and_start_at(future, current.log_start_offset)
    max_bytes = min(_CHUNK_BYTES, future.config.segment_bytes)  # the limit of one append
    data = current.read(
        future.log_end_offset, max_bytes, FetchIsolation.LOG_END, min_one_message=True
    )
    records = b"" if data.records is None else data.records.read()
    try:
        future.append_as_follower(records)
    except UnexpectedAppendOffset as error:
        # The log start offset lies inside of a batch: the copy starts with the whole batch.
        truncate_fully_and_start_at(future, error.first_offset, current.log_start_offset)
        future.append_as_follower(records)
    future.update_high_watermark(min(current.high_watermark, future.log_end_offset))
    future.maybe_increment_log_start_offset(min(current.log_start_offset, future.high_watermark))
    return len(records)
