"""ListOffsets: offsets by timestamp."""

import os
from pathlib import Path

import pytest

from broker.log.config import LogConfig
from broker.log.offset_lookup import legacy_offsets_before, offset_for_timestamp
from broker.log.offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)
from broker.log.partition_log import PartitionLog
from tests.log.support import GOLDEN, NOW_MS, batch, golden_copy, open_log


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Offsets 0 to 19, ten milliseconds apart, two records a batch, three segments."""
    log = open_log(tmp_path / "orders-0", LogConfig(index_interval_bytes=100))
    for number in range(10):
        if number in (4, 8):
            log.roll()
        log.append_as_leader(batch("a", "b", timestamp=NOW_MS + 10 * number), number // 4)
    log.update_high_watermark(20)
    return log


@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize(("delta", "expected"), [(0, 0), (1, 1), (-1, 0), (-8, 0)])
def test_first_record_not_older_than_the_time(
    number: int, delta: int, expected: int, log: PartitionLog
) -> None:
    found = offset_for_timestamp(log, NOW_MS + 10 * number + delta)
    assert found is not None
    assert found.offset == 2 * number + expected
    assert found.timestamp == NOW_MS + 10 * number + expected
    assert found.leader_epoch == number // 4


def test_time_after_everything_finds_nothing(log: PartitionLog) -> None:
    assert offset_for_timestamp(log, NOW_MS + 92) is None


def test_records_before_the_start_offset_are_not_found(log: PartitionLog) -> None:
    log.maybe_increment_log_start_offset(3)
    found = offset_for_timestamp(log, 0)
    assert found is not None
    assert (found.offset, found.timestamp) == (3, NOW_MS + 11)


def test_earliest_is_the_start_and_latest_the_end(log: PartitionLog) -> None:
    log.maybe_increment_log_start_offset(9)
    for earliest in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        assert offset_for_timestamp(log, earliest) == (-1, 9, 1)
    assert offset_for_timestamp(log, LATEST_TIMESTAMP) == (-1, 20, 2)
    assert offset_for_timestamp(log, LATEST_TIERED_TIMESTAMP) == (-1, -1, -1)


def test_max_timestamp_is_the_record_that_has_it(log: PartitionLog) -> None:
    log.append_as_leader(batch("x", "y", "z", timestamp=NOW_MS - 500), 3)
    assert offset_for_timestamp(log, MAX_TIMESTAMP) == (NOW_MS + 91, 19, 2)
    log.append_as_leader(batch("x", timestamp=NOW_MS + 5_000), 3)
    assert offset_for_timestamp(log, MAX_TIMESTAMP) == (NOW_MS + 5_000, 23, 3)


def test_empty_log_has_no_max_timestamp(tmp_path: Path) -> None:
    assert offset_for_timestamp(open_log(tmp_path / "orders-0"), MAX_TIMESTAMP) is None


def test_times_out_of_order_find_the_first_record_in_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for delta in (5, 1, 9, 3):
        log.append_as_leader(batch("x", timestamp=NOW_MS + delta), 0)
    found = offset_for_timestamp(log, NOW_MS + 3)
    assert found is not None
    assert found.offset == 0
    later = offset_for_timestamp(log, NOW_MS + 6)
    assert later is not None
    assert later.offset == 2


@pytest.mark.parametrize("name", ["magic1/old-0", "magic1/old-gzip-0", "magic1/old-lz4-0"])
def test_times_are_found_inside_of_old_messages(name: str, tmp_path: Path) -> None:
    log = open_log(golden_copy(GOLDEN / name, tmp_path / "orders-0"))
    largest = offset_for_timestamp(log, MAX_TIMESTAMP)
    assert largest is not None
    assert largest.leader_epoch is None
    found = offset_for_timestamp(log, largest.timestamp)
    assert found is not None
    assert found.timestamp == largest.timestamp


class TestVersionZero:
    @pytest.fixture
    def aged(self, log: PartitionLog) -> PartitionLog:
        for index, segment in enumerate(log.segments):
            os.utime(segment.log.path, (1_000 * (index + 1), 1_000 * (index + 1)))
        return log

    def test_latest_gives_the_end_and_segment_starts_falling(self, aged: PartitionLog) -> None:
        assert legacy_offsets_before(aged, LATEST_TIMESTAMP, 10) == [20, 16, 8, 0]
        assert legacy_offsets_before(aged, LATEST_TIMESTAMP, 1) == [20]

    def test_earliest_gives_the_start_only(self, aged: PartitionLog) -> None:
        assert legacy_offsets_before(aged, EARLIEST_TIMESTAMP, 10) == [0]

    def test_time_gives_segments_changed_before_it(self, aged: PartitionLog) -> None:
        assert legacy_offsets_before(aged, 2_500_000, 10) == [8, 0]
        assert legacy_offsets_before(aged, 1, 10) == []
