"""Group commit: the flushes that `flush.messages` requires, in threads, for many appends at once.

With `flush.messages=1` no batch may be acknowledged before it is on the medium. Kafka flushes
inside of every append. Here an append only marks its log as due. All appends of one iteration of
the event loop, and all that arrive while the previous flush of the partition is running, form a
window: they wait together for one fdatasync in a thread.

    append → due → (next iteration) flush in a thread → mark flushed → re-evaluate the partition
                              ↑ again, if appends arrived meanwhile ↵

A leader counts only flushed batches for its high watermark, so that consumers and acks=all wait
too; acks=1 waits in the purgatory (`Partition.acks_reached`). A follower sends its new log end to
the leader after its flush (`ReplicaFetcher`).
"""

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from broker.errors import ApiError
from broker.log.log_files import FlushedBatches
from broker.log.partition_log import PartitionLog
from broker.replica.partition import Partition
from broker.replica.reevaluation import Event

logger = logging.getLogger(__name__)

_THREADS: Final = 8
"""Partitions that are flushed at the same time. File systems merge concurrent flushes, so that
eight take little longer than one."""


class GroupCommit:
    """Flushes the logs of partitions, each by one thread at a time.

    Field `_requested`: to be flushed from the next iteration of the event loop on.
    Field `_running`: partitions whose flush is running; their next one starts when it ends.
    Field `_is_closed`: no flush starts any more; the broker is stopping.
    """

    def __init__(self) -> None:
        self._is_closed = False
        self._threads = ThreadPoolExecutor(_THREADS, "group-commit")
        self._requested: set[Partition] = set()
        self._running: set[Partition] = set()

    def request(self, partition: Partition) -> None:
        """Flush the partition soon; `Event.FLUSHED` follows. Requests may be repeated."""
        if self._is_closed or partition in self._running or partition in self._requested:
            return
        if not self._requested:
            asyncio.get_running_loop().call_soon(self._start)
        self._requested.add(partition)

    def _start(self) -> None:
        requested, self._requested = self._requested, set()
        for partition in () if self._is_closed else requested:
            self._flush(partition)

    def _flush(self, partition: Partition) -> None:
        self._running.add(partition)
        log = partition.log
        flush = asyncio.get_running_loop().run_in_executor(self._threads, log.flush_batches)
        flush.add_done_callback(lambda done: self._flushed(partition, log, done))

    def _flushed(
        self, partition: Partition, log: PartitionLog, done: asyncio.Future[FlushedBatches]
    ) -> None:
        self._running.discard(partition)
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            # The log directory is taken offline, which ends all waits for the partition.
            logger.error("group commit failed partition=%s: %s", partition.name, error)
            return
        log.mark_batches_flushed(done.result())
        if partition.log.flush_is_due:
            self.request(partition)
        partition.reevaluate(Event.FLUSHED)

    async def flush(self, logs: Iterable[PartitionLog]) -> None:
        """Flush these logs, of partitions that this broker follows; ApiError if one fails."""
        loop = asyncio.get_running_loop()
        logs = list(logs)
        flushes = [loop.run_in_executor(self._threads, log.flush_batches) for log in logs]
        results = await asyncio.gather(*flushes, return_exceptions=True)
        for log, result in zip(logs, results, strict=True):
            if isinstance(result, FlushedBatches):
                log.mark_batches_flushed(result)
            elif not isinstance(result, ApiError):  # an ApiError has taken the log offline
                raise result

    def close(self) -> None:
        """Start no further flush, and wait for those that are running."""
        self._is_closed = True
        self._threads.shutdown()
