"""Break the disk on purpose: the error names the file, nothing acknowledged is lost."""

import errno
from pathlib import Path

import pytest

from broker.errors import ApiError, ErrorCode
from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.records.batch import iterate_batches
from tests.log.support import (
    ABORT,
    UNCLEAN,
    BreakingDisk,
    batch,
    marker,
    open_log,
    produced,
    values_of,
)

# Small enough that a few batches touch everything: index entries, rolls, snapshots, flushes.
BUSY = LogConfig(segment_bytes=400, index_interval_bytes=50, flush_messages=4)


def workload(log: PartitionLog, acknowledged: list[str]) -> None:
    """Append in every way, and record each value that was acknowledged."""
    for number in range(6):
        value = f"plain-{number}"
        log.append_as_leader(batch(value), 0)
        acknowledged.append(value)
        value = f"txn-{number}"
        log.append_as_leader(produced(value, sequence=number, transactional=True), number // 2)
        acknowledged.append(value)
        log.append_as_leader(marker(ABORT), number // 2, AppendOrigin.COORDINATOR)
    log.roll()
    log.flush(include_active=True)


def count_changes(tmp_path: Path) -> int:
    disk = BreakingDisk(fails_at=-1, stays_broken=False)
    directory = tmp_path / "counted"
    log = open_log(directory, BUSY, fs=disk)
    workload(log, [])
    log.close()
    return disk.changes


@pytest.mark.parametrize(("error", "torn_bytes"), [(errno.EIO, 0), (errno.ENOSPC, 20)])
def test_nothing_acknowledged_is_lost_whichever_change_fails(
    error: int, torn_bytes: int, tmp_path: Path
) -> None:
    changes = count_changes(tmp_path)
    assert changes > 60
    for fails_at in range(1, changes + 1):
        directory = tmp_path / f"orders-{fails_at}"
        disk = BreakingDisk(fails_at, error, torn_bytes)
        acknowledged: list[str] = []
        with pytest.raises((ApiError, OSError)) as failure:
            log = open_log(directory, BUSY, fs=disk)
            workload(log, acknowledged)
            log.close()
        assert disk.failed_on is not None
        assert disk.failed_on.name in str(failure.value)
        recovered = open_log(directory, BUSY, load_from=UNCLEAN)
        found = values_of(recovered)
        assert [value for value in found if value in acknowledged] == acknowledged, fails_at


def test_failed_write_takes_the_log_offline_and_tells_once_why(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory)
    log.append_as_leader(batch("kept"), 0)
    log.segments.active.log._fs = BreakingDisk(fails_at=1, error=errno.ENOSPC)
    with pytest.raises(ApiError) as failure:
        log.append_as_leader(batch("lost"), 0)
    assert failure.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "No space left" in failure.value.message
    assert "00000000000000000000.log" in failure.value.message
    assert log.log_end_offset == 1
    for attempt in (lambda: log.append_as_leader(batch("no"), 0), lambda: log.read(0, 10)):
        with pytest.raises(ApiError, match="offline"):
            attempt()


def test_torn_write_is_cut_off_at_once(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory)
    log.append_as_leader(batch("kept"), 0)
    path = directory / "00000000000000000000.log"
    whole = path.read_bytes()
    disk = BreakingDisk(fails_at=1, error=errno.ENOSPC, torn_bytes=30, stays_broken=False)
    log.segments.active.log._fs = disk
    with pytest.raises(ApiError):
        log.append_as_leader(batch("lost"), 0)
    assert path.read_bytes() == whole


def test_failed_index_write_leaves_no_batch_behind(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(index_interval_bytes=0))
    log.segments.active.indexes.offset._fs = BreakingDisk(fails_at=1, stays_broken=False)
    acknowledged = []
    with pytest.raises(ApiError, match=r"\.index"):
        for _ in range(1000):  # the first batch gets no index entry
            acknowledged += [log.append_as_leader(batch("x"), 0).last_offset]
    data = (log.directory / "00000000000000000000.log").read_bytes()
    assert [found.last_offset for found in iterate_batches(data)] == acknowledged


def test_failed_flush_does_not_move_the_recovery_point(tmp_path: Path) -> None:
    disk = BreakingDisk(fails_at=-1, stays_broken=False)
    log = open_log(tmp_path / "orders-0", fs=disk)
    log.append_as_leader(batch("a"), 0)
    log.flush_leader_epochs()
    disk.fails_at = disk.changes + 1
    with pytest.raises(ApiError, match=r"could not flush: .*\.log"):
        log.flush()
    assert log.recovery_point == 0
