"""Replicas on their way from one log directory to another (KIP-113).

A replica moves as its own follower: a *future* log in the other directory copies the current one,
in a thread, while clients go on. When it has all but the last bytes, it gets those on the event
loop, where no append can come in between, and takes the current log's place; the old files go after
the topic's delay. A broker that stops in between goes on from where the future log ends.
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
from broker.model import TopicPartition
from broker.replica.partition import Partition
from broker.replica.throttle import UNLIMITED, Rate

logger = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 1 << 20
_MAX_DIR_NAME: Final = 255
_UUID_LENGTH: Final = 32


class LogDirMoves:
    """The moves under way.

    Field `_tasks`: one per future log. Invariant: a partition with a task has a future log, until
    the task ends.
    Field `preferred`: where partitions shall be made that are not here yet.
    """

    def __init__(self, logs: LogManager, partitions: Mapping[TopicPartition, Partition]) -> None:
        self._logs = logs
        self._partitions = partitions
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self.preferred: dict[TopicPartition, Path] = {}
        self.limit = UNLIMITED
        """Bytes per second, of all moves: `replica.alter.log.dirs.io.max.bytes.per.second`."""
        self._rate = Rate()

    def begin(self, name: TopicPartition, destination: Path) -> None:
        """Move a replica; one that is there already stays, and a move elsewhere is given up.

        For a partition that is not here REPLICA_NOT_AVAILABLE, and the directory is remembered.
        """
        _check_length(name)
        self._check_online(destination)
        future = self._logs.get(name, is_future=True)
        if future is not None and future.log_dir != destination:
            self.give_up(name)
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
        """Go on with a move, if one is under way and nobody is at it."""
        future = self._logs.get(partition.name, is_future=True)
        if future is None or partition.name in self._tasks:
            return
        # Before anything is appended: what the current log lost in a crash the future one must too.
        future.truncate_to(partition.log.log_end_offset)
        task = asyncio.get_running_loop().create_task(self._move(partition, future))
        self._tasks[partition.name] = task
        task.add_done_callback(lambda _: self._tasks.pop(partition.name, None))

    def give_up(self, name: TopicPartition) -> None:
        """Stop a move, if there is one, and delete the future log."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
        if self._logs.get(name, is_future=True) is not None:
            self._logs.delete(name, is_future=True)

    async def stop(self) -> None:
        """Let every move rest; the next start goes on with them."""
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
                    await self._take_time(copied)
                await asyncio.to_thread(future.flush)
                # On the loop, so that no append comes in between: from here to the exchange.
                while _copy_chunk(current, future):
                    pass
                self._logs.replace_current_with_future(name)
        except ApiError as error:
            logger.error("replica could not be moved partition=%s: %s", name, error)
            return
        partition.log = future
        partition.moves.wake()
        logger.info("replica moved partition=%s dir=%s", name, future.log_dir)

    async def _take_time(self, num_bytes: int) -> None:
        """Wait as long as all moves together are faster than they may be."""
        now_s = asyncio.get_running_loop().time()
        self._rate.record(num_bytes, now_s)
        await asyncio.sleep(self._rate.seconds_above(self.limit, now_s))


def _check_length(name: TopicPartition) -> None:
    """A future log's directory has more in its name than the partition."""
    if len(f"{name}.{FUTURE_DIR}") + _UUID_LENGTH > _MAX_DIR_NAME:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")


def _copy_chunk(current: PartitionLog, future: PartitionLog) -> int:
    """Bring the future log nearer to the current one; gives the bytes, 0 when none were left.

    The current log is held meanwhile: a follower may have to cut both, and nothing that it cuts
    from one may then arrive in the other.
    """
    with current.lock:
        return _copy(current, future)


def _copy(current: PartitionLog, future: PartitionLog) -> int:
    if future.log_end_offset < current.log_start_offset:
        future.truncate_fully_and_start_at(current.log_start_offset)
    max_bytes = min(_CHUNK_BYTES, future.config.segment_bytes)  # what one append may be
    data = current.read(
        future.log_end_offset, max_bytes, FetchIsolation.LOG_END, min_one_message=True
    )
    records = b"" if data.records is None else data.records.read()
    try:
        future.append_as_follower(records)
    except UnexpectedAppendOffset as error:
        # The log start offset lies inside of a batch: the copy begins with the whole batch.
        future.truncate_fully_and_start_at(error.first_offset, current.log_start_offset)
        future.append_as_follower(records)
    future.update_high_watermark(min(current.high_watermark, future.log_end_offset))
    future.maybe_increment_log_start_offset(min(current.log_start_offset, future.high_watermark))
    return len(records)
