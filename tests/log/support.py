"""Helpers for the log tests: short constructors for batches and logs, and failing disks."""

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from broker.clock import Clock, ManualClock
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.files import Buffer, FileSystem, OpenFile
from broker.log.offsets import FetchIsolation
from broker.log.partition_log import PartitionLog
from broker.log.recovery import LoadFrom, load_log
from broker.model import TopicPartition
from broker.records.batch import Batch, iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "logs"
PARTITION = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000
COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT

# index.interval.bytes of the golden topics that were not made with the default.
GOLDEN_INTERVALS = {"rolled": 100, "txn": 100, "old": 256}


def golden_config(directory: Path) -> LogConfig:
    """The settings that Kafka wrote a golden partition with, as far as they affect its files."""
    name = directory.name.rpartition("-")[0]
    return LogConfig(index_interval_bytes=GOLDEN_INTERVALS.get(name, 4096))


def golden_copy(source: Path, target: Path) -> Path:
    """A golden directory as a copy that can be written to."""
    shutil.copytree(source, target)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return target


def batch(
    *values: bytes | str,
    keys: Sequence[bytes | None] = (),
    timestamp: int = NOW_MS,
    offset: int = 0,
    settings: BatchSettings | None = None,
) -> bytes:
    """A batch of these values, a millisecond apart; keys count from `k0` unless given."""
    rows = []
    for index, value in enumerate(values):
        key = keys[index] if keys else b"k%d" % index
        data = value.encode() if isinstance(value, str) else value
        rows.append((offset + index, timestamp + index, key, data, ()))
    return build_batch(rows, settings or BatchSettings())


def keyed(key: str, value: str | None, timestamp: int = NOW_MS) -> bytes:
    """A batch of one record; without a value it is a tombstone."""
    data = None if value is None else value.encode()
    return build_batch([(0, timestamp, key.encode(), data, ())])


def produced(
    *values: str,
    sequence: int = 0,
    producer_id: int = 7,
    epoch: int = 0,
    transactional: bool = False,
) -> bytes:
    """A batch of an idempotent (or transactional) producer."""
    settings = BatchSettings(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    return batch(*values, settings=settings)


def marker(
    kind: ControlRecordType, producer_id: int = 7, epoch: int = 0, coordinator_epoch: int = 0
) -> bytes:
    """The control batch that ends a transaction."""
    end = EndTransactionMarker(kind, coordinator_epoch)
    return build_end_transaction_batch(end, producer_id, epoch, NOW_MS)


def open_log(
    directory: Path,
    config: LogConfig | None = None,
    clock: Clock | None = None,
    fs: FileSystem | None = None,
    load_from: LoadFrom | None = None,
) -> PartitionLog:
    """Load the log in `directory`, or create it."""
    directory.mkdir(exist_ok=True)
    environment = LogEnvironment(fs or UnflushedDisk(), clock or ManualClock(NOW_MS))
    return load_log(
        directory, PARTITION, config or LogConfig(), environment, load_from or LoadFrom()
    )


UNCLEAN = LoadFrom(is_clean=False)


def everything(log: PartitionLog) -> bytes:
    """All bytes of the log from its start, read as a follower reads."""
    parts = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = log.read(offset, 1 << 20, FetchIsolation.LOG_END, min_one_message=True)
        if found.records is None:
            break
        data = found.records.read()
        parts.append(data)
        *_, last = iterate_batches(data)
        offset = last.next_offset
    return b"".join(parts)


def batches_of(log: PartitionLog) -> list[Batch]:
    """All batches of the log."""
    return list(iterate_batches(everything(log)))


def texts_of(found: Batch) -> list[str]:
    """The values of a batch without tombstones, decoded."""
    texts: list[str] = []
    for record in found.records():
        assert record.value is not None, record
        texts.append(record.value.decode())
    return texts


def values_of(log: PartitionLog) -> list[str | None]:
    """All values of the log's data records, in order."""
    return [
        None if record.value is None else record.value.decode()
        for found in batches_of(log)
        if not found.is_control
        for record in found.records()
    ]


def offsets_of(log: PartitionLog) -> list[int]:
    """The offsets of the log's data records, in order."""
    return [
        record.offset
        for found in batches_of(log)
        if not found.is_control
        for record in found.records()
    ]


def files_of(directory: Path, *suffixes: str) -> dict[str, bytes]:
    """File name → bytes, of the files with these suffixes."""
    found: Iterable[Path] = sorted(directory.iterdir())
    return {path.name: path.read_bytes() for path in found if path.suffix in suffixes}


class UnflushedDisk(FileSystem):
    """The real disk without flushes: no test simulates a power failure."""

    def sync(self, file: OpenFile) -> None:
        """Do not flush."""

    def sync_data(self, file: OpenFile) -> None:
        """Do not flush."""

    def sync_directory(self, path: Path) -> None:
        """Do not flush."""


class BreakingDisk(UnflushedDisk):
    """A disk that fails at its nth change, and at every change after that if `stays_broken`.

    A failing write first writes `torn_bytes` of its data, as on a full disk.
    """

    def __init__(
        self,
        fails_at: int,
        error: int = errno.EIO,
        torn_bytes: int = 0,
        stays_broken: bool = True,
    ) -> None:
        self.changes = 0
        self.failed_on: Path | None = None
        self.fails_at = fails_at
        self._error = error
        self._torn_bytes = torn_bytes
        self._stays_broken = stays_broken

    def _change(self, path: Path) -> None:
        self.changes += 1
        is_due = self.changes == self.fails_at
        if is_due or (self._stays_broken and self.changes > self.fails_at):
            self.failed_on = self.failed_on or path
            raise OSError(self._error, os.strerror(self._error), str(path))

    def write(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> None:
        try:
            self._change(file.path)
        except OSError:
            if self.failed_on == file.path and self._torn_bytes:
                os.pwrite(file.fd, b"".join(buffers)[: self._torn_bytes], position)
            raise
        super().write(file, buffers, position)

    def truncate(self, file: OpenFile, size: int) -> None:
        self._change(file.path)
        super().truncate(file, size)

    def allocate(self, file: OpenFile, position: int, length: int) -> None:
        self._change(file.path)
        super().allocate(file, position, length)

    def sync(self, file: OpenFile) -> None:
        self._change(file.path)
        super().sync(file)

    def sync_data(self, file: OpenFile) -> None:
        self._change(file.path)
        super().sync_data(file)

    def sync_directory(self, path: Path) -> None:
        self._change(path)
        super().sync_directory(path)

    def rename(self, source: Path, target: Path) -> None:
        self._change(source)
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self._change(path)
        super().remove(path)
