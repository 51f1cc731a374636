"""A crash at any step of a cleaning leaves the old log or the new one after a restart."""

from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError
from broker.log.cleaner import Cleaner
from broker.log.config import CleanerConfig, LogConfig
from broker.log.files import FileSystem
from broker.log.partition_log import PartitionLog
from tests.log.support import UNCLEAN, BreakingDisk, keyed, open_log, values_of

COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=400)
MEMORY = CleanerConfig(dedupe_buffer_size=24 * 1000)


def write_log(directory: Path, fs: FileSystem) -> PartitionLog:
    """Three keys, each written many times, over several segments."""
    log = open_log(directory, COMPACTED, ManualClock(), fs)
    for number in range(15):
        log.append_as_leader(keyed(f"k{number % 3}", f"v{number}"), 0)
    log.update_high_watermark(log.log_end_offset)
    log.flush(include_active=True)
    return log


def clean(log: PartitionLog) -> None:
    cleaner = Cleaner(MEMORY, lambda: None)
    cleaner.clean(log, 0, log.segments.active.base_offset)


def latest(values: list[str | None]) -> set[str | None]:
    return set(values[-3:])


@pytest.mark.parametrize("is_clean", [False, True])
def test_crash_at_any_step_of_cleaning_keeps_the_latest_of_every_key(
    is_clean: bool, tmp_path: Path
) -> None:
    counting = BreakingDisk(fails_at=-1, stays_broken=False)
    log = write_log(tmp_path / "counted", counting)
    before = counting.changes
    original = values_of(log)
    clean(log)
    cleaned = values_of(log)
    assert len(cleaned) < len(original)
    seen = set()
    for step in range(1, counting.changes - before + 1):
        directory = tmp_path / f"orders-{step}"
        disk = BreakingDisk(fails_at=before + step)
        interrupted = write_log(directory, disk)
        with pytest.raises((ApiError, OSError)):
            clean(interrupted)
        load_from = None if is_clean else UNCLEAN
        reopened = open_log(directory, COMPACTED, load_from=load_from)
        found = values_of(reopened)
        assert latest(found) == latest(original)
        assert set(cleaned) <= set(found)
        assert reopened.log_end_offset == 15
        assert not [p for p in directory.iterdir() if p.suffix in (".cleaned", ".swap", ".deleted")]
        seen.add(tuple(found))
    assert tuple(original) in seen
    assert tuple(cleaned) in seen
