"""Idle partitions cost no descriptors, no reads of sealed segments and no flushes."""

from pathlib import Path

from broker.clock import ManualClock
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.files import OpenFile
from broker.log.manager import LogManager
from broker.model import TopicPartition
from tests.log.support import NOW_MS, UnflushedDisk, batch, open_log


class CountingDisk(UnflushedDisk):
    """Counts flushes."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, file: OpenFile) -> None:
        self.syncs += 1


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def manager(path: Path, disk: UnflushedDisk) -> LogManager:
    environment = LogEnvironment(disk, ManualClock(NOW_MS))
    logs = LogManager([path], lambda topic: LogConfig(), environment)
    logs.startup()
    return logs


def test_idle_partitions_hold_no_descriptors_and_stop_without_a_flush(tmp_path: Path) -> None:
    logs = manager(tmp_path, UnflushedDisk())
    for number in range(50):
        log = logs.get_or_create(TopicPartition("t", number))
        log.append_as_leader(batch("x"), 0)
    logs.shutdown()
    before = descriptors()
    disk = CountingDisk()
    again = manager(tmp_path, disk)
    assert len(again.logs) == 50
    assert descriptors() <= before + 9  # the lock, and the reserve for checkpoints
    again.shutdown()
    # The checkpoints and the clean-shutdown marker; nothing per partition.
    assert disk.syncs <= 5


def test_written_partitions_give_their_descriptors_back_when_idle(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(index_interval_bytes=0))
    before = descriptors()
    for _ in range(200):  # enough for entries to be written
        log.append_as_leader(batch("x"), 0)
    assert descriptors() > before
    log.release_idle_files()
    log.release_idle_files()
    assert descriptors() <= before
    assert log.append_as_leader(batch("x"), 0).first_offset == 200


def test_clean_start_reads_no_sealed_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for _ in range(3):
        log.append_as_leader(batch("x"), 0)
        log.roll()
    log.close()
    for offset in (0, 1, 2):
        path = log.directory / f"{offset:020d}.log"
        path.write_bytes(b"\xff" * path.stat().st_size)
    assert open_log(log.directory).log_end_offset == 3


def test_append_flushes_nothing(tmp_path: Path) -> None:
    disk = CountingDisk()
    log = open_log(tmp_path / "orders-0", LogConfig(segment_bytes=300), fs=disk)
    log.append_as_leader(batch("x"), 0)  # the first one of an epoch writes the epoch
    after_first = disk.syncs
    for _ in range(20):
        log.append_as_leader(batch("x"), 0)
    assert len(log.segments) > 3
    assert disk.syncs == after_first
