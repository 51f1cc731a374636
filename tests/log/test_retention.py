"""Retention: which segments are deleted, and when their files are removed."""

from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.log.retention import delete_old_segments
from tests.log.support import NOW_MS, batch, open_log, values_of

SIZE = len(batch("x"))


def filled(
    directory: Path, config: LogConfig, clock: ManualClock | None = None, segments: int = 5
) -> PartitionLog:
    """One record per segment, a second apart, all replicated; the last one active."""
    log = open_log(directory, config, clock or ManualClock(NOW_MS))
    for number in range(segments):
        if number:
            log.roll()
        log.append_as_leader(batch("x", timestamp=NOW_MS + 1_000 * number), 0)
    log.update_high_watermark(log.log_end_offset)
    return log


class TestByTime:
    def test_segments_older_than_the_limit_go(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = filled(tmp_path / "orders-0", LogConfig(retention_ms=5_000), clock)
        clock.advance(5_000)
        assert delete_old_segments(log) == 0
        clock.advance(1_500)
        assert delete_old_segments(log) == 2
        assert log.log_start_offset == 2
        assert log.segments.base_offsets == (2, 3, 4)

    def test_active_segment_goes_too_and_the_end_offset_stays(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = filled(tmp_path / "orders-0", LogConfig(retention_ms=5_000), clock)
        clock.advance(60_000)
        assert delete_old_segments(log) == 5
        assert (log.log_start_offset, log.log_end_offset) == (5, 5)
        assert log.segments.base_offsets == (5,)
        assert delete_old_segments(log) == 0

    def test_one_young_record_keeps_the_segments_after_it(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = open_log(tmp_path / "orders-0", LogConfig(retention_ms=5_000), clock)
        for timestamp in (NOW_MS + 60_000, NOW_MS, NOW_MS):
            log.append_as_leader(batch("x", timestamp=timestamp), 0)
            log.roll()
        log.update_high_watermark(3)
        clock.advance(30_000)
        assert delete_old_segments(log) == 0

    def test_negative_limit_keeps_everything(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = filled(tmp_path / "orders-0", LogConfig(retention_ms=-1), clock)
        clock.advance(10**12)
        assert delete_old_segments(log) == 0

    def test_records_without_timestamp_age_with_their_file(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = open_log(tmp_path / "orders-0", LogConfig(retention_ms=5_000), clock)
        log.append_as_leader(batch("x", timestamp=-1), 0)
        log.update_high_watermark(1)
        assert log.segments.active.largest_timestamp > NOW_MS
        assert delete_old_segments(log) == 0


class TestBySize:
    @pytest.mark.parametrize(
        ("limit", "deleted"), [(5 * SIZE, 0), (4 * SIZE + 1, 0), (4 * SIZE, 1), (1, 4), (0, 5)]
    )
    def test_deletes_while_enough_remains(self, limit: int, deleted: int, tmp_path: Path) -> None:
        config = LogConfig(retention_bytes=limit, retention_ms=-1)
        log = filled(tmp_path / "orders-0", config)
        assert delete_old_segments(log) == deleted


class TestByStartOffset:
    def test_segments_before_the_start_offset_go(self, tmp_path: Path) -> None:
        log = filled(tmp_path / "orders-0", LogConfig(retention_ms=-1))
        log.maybe_increment_log_start_offset(3)
        assert delete_old_segments(log) == 3
        assert log.segments.base_offsets == (3, 4)

    def test_compacted_log_loses_only_what_is_before_its_start(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        config = LogConfig(cleanup_policy=frozenset({"compact"}), retention_ms=1, retention_bytes=1)
        log = filled(tmp_path / "orders-0", config, clock)
        clock.advance(10**9)
        assert delete_old_segments(log) == 0
        log.maybe_increment_log_start_offset(2)
        assert delete_old_segments(log) == 2

    def test_compact_and_delete_together_delete_by_time(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        config = LogConfig(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=1)
        log = filled(tmp_path / "orders-0", config, clock)
        clock.advance(10**9)
        assert delete_old_segments(log) == 5


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    log = filled(tmp_path / "orders-0", LogConfig(retention_ms=1), clock)
    log.update_high_watermark(2)
    clock.advance(10**9)
    assert delete_old_segments(log) == 2
    assert log.log_start_offset == 2


def test_files_are_renamed_at_once_and_removed_after_the_delay(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    config = LogConfig(retention_ms=1, file_delete_delay_ms=60_000)
    log = filled(tmp_path / "orders-0", config, clock)
    clock.advance(10_000)
    delete_old_segments(log)
    renamed = {path.name for path in log.directory.glob("*.deleted")}
    assert f"{0:020d}.log.deleted" in renamed
    assert f"{1:020d}.snapshot.deleted" in renamed
    assert not (log.directory / f"{0:020d}.log").exists()
    clock.advance(59_999)
    log.delete_pending_files()
    assert {path.name for path in log.directory.glob("*.deleted")} == renamed
    clock.advance(1)
    log.delete_pending_files()
    assert not list(log.directory.glob("*.deleted"))


def test_deleted_files_of_the_last_run_are_removed_at_restart(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    log = filled(tmp_path / "orders-0", LogConfig(retention_ms=1), clock)
    log.append_as_leader(batch("kept", timestamp=NOW_MS + 20_000), 0)
    log.update_high_watermark(6)
    clock.advance(10_000)
    delete_old_segments(log)
    log.close()
    reopened = open_log(log.directory)
    assert not list(log.directory.glob("*.deleted"))
    assert values_of(reopened) == ["x", "kept"]
