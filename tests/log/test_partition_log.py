"""PartitionLog: append, read, roll, truncate."""

from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode, OffsetOutOfRange
from broker.log.append import UnexpectedAppendOffset
from broker.log.config import LogConfig
from broker.log.files import FileSystem, OpenFile
from broker.log.layout import LOG, OFFSET_INDEX, TIME_INDEX
from broker.log.offset_index import OffsetIndex, OffsetPosition
from broker.log.offsets import FetchIsolation
from broker.log.partition_log import PartitionLog
from broker.log.truncation import truncate_fully_and_start_at, truncate_to
from broker.model import Uuid
from broker.records.batch import iterate_batches
from tests.log.support import (
    NOW_MS,
    batch,
    batches_of,
    files_of,
    offsets_of,
    open_log,
    values_of,
)


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_log(tmp_path / "orders-0")


def rolled_log(directory: Path, *, config: LogConfig | None = None) -> PartitionLog:
    """Five segments of two records, the last one active; everything replicated."""
    log = open_log(directory, config)
    for number in range(5):
        if number:
            log.roll()
        log.append_as_leader(batch(f"a{number}", f"b{number}"), number)
    log.update_high_watermark(log.log_end_offset)
    return log


class TestAppend:
    def test_offsets_count_on_and_the_leader_epoch_is_stamped(self, log: PartitionLog) -> None:
        first = log.append_as_leader(batch("a", "b", "c"), 3)
        second = log.append_as_leader(batch("d"), 4)
        assert (first.first_offset, first.last_offset) == (0, 2)
        assert (second.first_offset, second.last_offset) == (3, 3)
        assert [b.header.partition_leader_epoch for b in batches_of(log)] == [3, 4]
        assert offsets_of(log) == [0, 1, 2, 3]

    def test_read_only_buffer_is_not_written_to(self, log: PartitionLog) -> None:
        sent = batch("a")
        log.append_as_leader(batch("first"), 0)
        log.append_as_leader(sent, 7)
        assert sent == batch("a")

    def test_create_time_answers_no_append_time(self, log: PartitionLog) -> None:
        info = log.append_as_leader(batch("a", timestamp=NOW_MS - 5), 0)
        assert (info.max_timestamp, info.log_append_time) == (NOW_MS - 5, -1)

    def test_nothing_in_the_request_appends_nothing(self, log: PartitionLog) -> None:
        assert log.append_as_leader(b"", 0).first_offset == -1
        assert log.log_end_offset == 0

    def test_follower_takes_offsets_and_epochs_of_its_leader(
        self, log: PartitionLog, tmp_path: Path
    ) -> None:
        follower = open_log(tmp_path / "follower")
        log.append_as_leader(batch("a", "b"), 1)
        log.append_as_leader(batch("c"), 2)
        data = log.read(0, 10_000, FetchIsolation.LOG_END).records
        assert data is not None
        follower.append_as_follower(data.read())
        assert follower.log_end_offset == 3
        assert follower.leader_epochs.entries == log.leader_epochs.entries
        assert files_of(tmp_path / "follower", LOG) == files_of(log.directory, LOG)

    def test_follower_ignores_a_batch_cut_by_the_fetch_size(
        self, log: PartitionLog, tmp_path: Path
    ) -> None:
        follower = open_log(tmp_path / "follower")
        log.append_as_leader(batch("a"), 1)
        log.append_as_leader(batch("b"), 1)
        data = (log.directory / "00000000000000000000.log").read_bytes()
        follower.append_as_follower(data[:-1])
        assert follower.log_end_offset == 1

    def test_follower_refuses_offsets_it_has(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("a", "b"), 0)
        with pytest.raises(UnexpectedAppendOffset) as refused:
            log.append_as_follower(batch("x", offset=1))
        assert (refused.value.first_offset, refused.value.last_offset) == (1, 1)
        assert log.log_end_offset == 2

    def test_follower_refuses_offsets_out_of_order(self, log: PartitionLog) -> None:
        with pytest.raises(ApiError, match="out of order"):
            log.append_as_follower(batch("x", offset=5) + batch("y", offset=4))
        assert log.log_end_offset == 0

    def test_follower_takes_a_gap(self, log: PartitionLog) -> None:
        log.append_as_follower(batch("x", offset=5))
        assert log.log_end_offset == 6

    def test_append_larger_than_a_segment_is_refused(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(segment_bytes=100))
        with pytest.raises(ApiError) as refused:
            log.append_as_leader(batch("x" * 100), 0)
        assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


class TestRead:
    def test_every_offset_finds_its_batch_across_segments(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        for offset in range(10):
            found = log.read(offset, 1, min_one_message=True)
            assert found.records is not None
            header = next(iterate_batches(found.records.read())).header
            assert header.base_offset == offset // 2 * 2
            assert int(found.records.file.path.stem) == offset // 2 * 2

    def test_first_batch_is_complete_only_with_min_one_message(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("x" * 500), 0)
        log.update_high_watermark(1)
        whole = log.read(0, 10, min_one_message=True)
        cut = log.read(0, 10)
        assert whole.records is not None
        assert len(whole.records) > 500
        assert not whole.first_entry_incomplete
        assert cut.records is not None
        assert len(cut.records) == 10
        assert cut.first_entry_incomplete

    def test_read_ends_with_the_segment(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        found = log.read(0, 1 << 20)
        assert found.records is not None
        assert len(found.records) == log.segments.first.size

    def test_consumer_sees_up_to_the_high_watermark(self, log: PartitionLog) -> None:
        for value in ("a", "b", "c"):
            log.append_as_leader(batch(value), 0)
        log.update_high_watermark(2)
        found = log.read(0, 1 << 20)
        assert found.records is not None
        assert [b.last_offset for b in iterate_batches(found.records.read())] == [0, 1]
        assert log.read(2, 1 << 20).records is None
        follower = log.read(2, 1 << 20, FetchIsolation.LOG_END)
        assert follower.records is not None

    def test_read_at_the_end_is_empty(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("a"), 0)
        assert log.read(1, 100, FetchIsolation.LOG_END).records is None

    @pytest.mark.parametrize("offset", [-1, 3, 4, 11])
    def test_read_outside_of_the_log_is_out_of_range(self, offset: int, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        log.maybe_increment_log_start_offset(5)
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100)

    def test_slice_outlives_the_deletion_of_its_segment(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0", config=LogConfig(file_delete_delay_ms=0))
        found = log.read(0, 1 << 20)
        assert found.records is not None
        truncate_fully_and_start_at(log, 50)
        log.delete_pending_files()
        assert not list(log.directory.glob("*.deleted"))
        assert next(iterate_batches(found.records.read())).last_offset == 1

    def test_released_files_are_opened_again(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        log.release_idle_files()
        log.release_idle_files()
        assert len(offsets_of(log)) == 10
        log.append_as_leader(batch("more"), 9)
        assert len(offsets_of(log)) == 11


class TestRoll:
    def test_rolls_when_the_next_batch_does_not_fit(self, tmp_path: Path) -> None:
        size = len(batch("x"))
        log = open_log(tmp_path / "orders-0", LogConfig(segment_bytes=3 * size))
        for _ in range(7):
            log.append_as_leader(batch("x"), 0)
        assert log.segments.base_offsets == (0, 3, 6)

    def test_rolls_by_the_timestamps_of_the_records(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(segment_ms=1_000))
        for timestamp in (NOW_MS, NOW_MS + 1_000, NOW_MS + 1_001):
            log.append_as_leader(batch("x", timestamp=timestamp), 0)
        assert log.segments.base_offsets == (0, 2)

    def test_jitter_rolls_earlier_but_never_later(self, tmp_path: Path) -> None:
        config = LogConfig(segment_ms=1_000, segment_jitter_ms=1_000)
        log = open_log(tmp_path / "orders-0", config)
        for timestamp in (NOW_MS, NOW_MS + 1_001):
            log.append_as_leader(batch("x", timestamp=timestamp), 0)
        assert log.segments.base_offsets == (0, 1)

    def test_rolls_when_an_index_is_full(self, tmp_path: Path) -> None:
        config = LogConfig(segment_index_bytes=24, index_interval_bytes=0)
        log = open_log(tmp_path / "orders-0", config)
        for _ in range(5):
            log.append_as_leader(batch("x"), 0)
        assert log.segments.base_offsets == (0, 2, 4)

    def test_rolls_when_an_offset_does_not_fit_the_index(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("x"), 0)
        log.append_as_follower(batch("y", offset=2**31))
        assert log.segments.base_offsets == (0, 2**31)

    def test_empty_segment_rolls_onto_itself(self, log: PartitionLog) -> None:
        log.roll()
        assert log.segments.base_offsets == (0,)
        assert log.append_as_leader(batch("x"), 0).first_offset == 0

    def test_rolled_segment_has_trimmed_indexes(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        assert (log.directory / f"{0:020d}{OFFSET_INDEX}").stat().st_size == 0
        assert (log.directory / f"{0:020d}{TIME_INDEX}").stat().st_size == 12
        active = log.directory / f"{8:020d}{OFFSET_INDEX}"
        assert active.stat().st_size == 10 * 1024 * 1024

    def test_preallocated_segment_is_trimmed_when_closed(self, tmp_path: Path) -> None:
        config = LogConfig(preallocate=True, segment_bytes=50_000)
        log = open_log(tmp_path / "orders-0", config)
        log.append_as_leader(batch("x"), 0)
        path = log.directory / f"{0:020d}{LOG}"
        assert path.stat().st_size == 50_000
        log.close()
        assert path.stat().st_size == len(batch("x"))


class TestTruncate:
    def test_truncation_inside_of_a_segment(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        assert truncate_to(log, 4)
        assert log.log_end_offset == 4
        assert values_of(log) == ["a0", "b0", "a1", "b1"]
        assert log.high_watermark == 4
        assert log.append_as_leader(batch("again"), 9).first_offset == 4
        assert values_of(log)[-1] == "again"

    def test_truncation_inside_of_a_batch_drops_the_whole_batch(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("a"), 0)
        log.append_as_leader(batch("b", "c"), 0)
        truncate_to(log, 2)
        assert values_of(log) == ["a"]
        assert log.log_end_offset == 2

    def test_truncation_at_or_above_the_end_changes_nothing(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        assert not truncate_to(log, 10)
        assert not truncate_to(log, 99)
        assert log.log_end_offset == 10

    def test_truncation_removes_epochs_above(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        truncate_to(log, 3)
        assert log.leader_epochs.entries == ((0, 0), (1, 2))

    def test_truncation_moves_the_recovery_point_back(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        log.flush()
        assert log.recovery_point == 10
        truncate_to(log, 3)
        assert log.recovery_point == 3

    def test_truncating_fully_starts_an_empty_log_elsewhere(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        truncate_fully_and_start_at(log, 100)
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
        assert log.leader_epochs.entries == ()
        assert log.append_as_leader(batch("x"), 7).first_offset == 100
        log.close()
        assert open_log(log.directory).log_end_offset == 101

    def test_truncated_log_reopens_the_same(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        truncate_to(log, 5)
        log.close()
        assert values_of(open_log(log.directory)) == ["a0", "b0", "a1", "b1"]


class TestOffsets:
    def test_high_watermark_stays_inside_of_the_log(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        assert log.update_high_watermark(99) == 10
        assert log.update_high_watermark(-5) == 0

    def test_high_watermark_rises_only(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        log.update_high_watermark(4)
        assert log.maybe_increment_high_watermark(6)
        assert not log.maybe_increment_high_watermark(5)
        assert log.high_watermark == 6
        with pytest.raises(ValueError, match="above"):
            log.maybe_increment_high_watermark(11)

    def test_deleting_records_moves_the_start_offset(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        assert log.maybe_increment_log_start_offset(3)
        assert log.log_start_offset == 3
        assert log.leader_epochs.entries[0] == (1, 3)
        assert not log.maybe_increment_log_start_offset(2)

    def test_records_above_the_high_watermark_cannot_be_deleted(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        log.update_high_watermark(4)
        with pytest.raises(OffsetOutOfRange):
            log.maybe_increment_log_start_offset(5)

    def test_end_offset_of_an_epoch(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        assert log.end_offset_for_epoch(1) == (1, 4)
        assert log.end_offset_for_epoch(4) == (4, 10)
        assert log.end_offset_for_epoch(9) is None
        assert log.end_offset_for_epoch(-1) is None


class TestFlush:
    def test_flush_moves_the_recovery_point_to_the_end(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("a"), 0)
        assert log.recovery_point == 0
        log.flush()
        assert log.recovery_point == 1

    def test_flush_messages_flushes_with_the_nth_record(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(flush_messages=3))
        log.append_as_leader(batch("a", "b"), 0)
        assert log.recovery_point == 0
        log.append_as_leader(batch("c"), 0)
        assert log.recovery_point == 3

    def test_flush_ms_flushes_when_the_time_is_over(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = open_log(tmp_path / "orders-0", LogConfig(flush_ms=1_000), clock)
        log.append_as_leader(batch("a"), 0)
        log.maybe_flush()
        assert log.recovery_point == 0
        clock.advance(1_000)
        log.maybe_flush()
        assert log.recovery_point == 1

    def test_rolled_segment_is_flushed_at_the_next_occasion(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        assert log.recovery_point == 0
        log.maybe_flush()
        assert log.recovery_point == 8


class TestDirectory:
    def test_topic_id_is_written_once_and_kept(self, log: PartitionLog) -> None:
        topic_id = Uuid.random()
        log.assign_topic_id(topic_id)
        assert open_log(log.directory).topic_id == topic_id
        log.assign_topic_id(topic_id)
        with pytest.raises(ApiError) as refused:
            log.assign_topic_id(Uuid.random())
        assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID

    def test_renamed_directory_keeps_working(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        log.rename_directory("orders-0.abc-delete")
        assert log.directory == tmp_path / "orders-0.abc-delete"
        assert len(values_of(log)) == 10
        log.append_as_leader(batch("more"), 9)
        log.roll()
        log.close()
        assert open_log(log.directory).log_end_offset == 11

    def test_deleted_log_leaves_nothing(self, tmp_path: Path) -> None:
        log = rolled_log(tmp_path / "orders-0")
        log.delete()
        assert not (tmp_path / "orders-0").exists()
        with pytest.raises(ApiError, match="offline"):
            log.append_as_leader(batch("x"), 0)


def log_of_batches(tmp_path: Path, count: int) -> PartitionLog:
    log = open_log(tmp_path / "orders-0")
    for number in range(count):
        log.append_as_leader(batch(f"value {number}"), 0)
    return log


def test_what_was_appended_last_is_found_without_a_look_at_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of_batches(tmp_path, 40)
    monkeypatch.setattr(OffsetIndex, "lookup", _not_asked)
    for offset in range(24, 40):
        found = log.read(offset, 1 << 20, FetchIsolation.LOG_END).records
        assert found is not None
        assert next(iterate_batches(found.read())).header.base_offset == offset
    with pytest.raises(AssertionError):
        log.read(23, 1 << 20, FetchIsolation.LOG_END)


def test_sequential_reader_is_served_without_an_index_lookup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of_batches(tmp_path, 40)
    log.read(3, 100, FetchIsolation.LOG_END)
    monkeypatch.setattr(OffsetIndex, "lookup", _not_asked)
    for offset in range(4, 40):
        found = log.read(offset, 100, FetchIsolation.LOG_END).records
        assert found is not None
        assert next(iterate_batches(found.read())).header.base_offset == offset
    with pytest.raises(AssertionError):
        log.read(3, 100, FetchIsolation.LOG_END)


def _not_asked(index: OffsetIndex, offset: int) -> OffsetPosition:
    raise AssertionError(offset)


def test_what_was_cut_is_not_found_where_it_lay(tmp_path: Path) -> None:
    log = log_of_batches(tmp_path, 4)
    truncate_to(log, 1)
    log.append_as_leader(batch("other"), 0)
    log.append_as_leader(batch("values", "of", "another", "size"), 0)
    for offset in range(1, 6):
        found = log.read(offset, 1 << 20, FetchIsolation.LOG_END).records
        assert found is not None
        first = next(iterate_batches(found.read()))
        assert first.header.base_offset <= offset <= first.last_offset


def test_regression_sequential_reader_after_a_truncation_gets_the_new_position(
    tmp_path: Path,
) -> None:
    log = log_of_batches(tmp_path, 3)
    log.read(1, 100, FetchIsolation.LOG_END)
    truncate_to(log, 1)
    log.append_as_leader(batch("second", "third", "fourth, all in one"), 0)
    found = log.read(2, 1 << 20, FetchIsolation.LOG_END).records
    assert found is not None
    assert next(iterate_batches(found.read())).header.base_offset == 1


class RecordingDisk(FileSystem):
    """Notes which files are flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def sync(self, file: OpenFile) -> None:
        """Flush, and note the file."""
        super().sync(file)
        self.synced.append(file.path.name)


def test_flush_of_the_active_segment_includes_its_indexes(tmp_path: Path) -> None:
    """As in Kafka; otherwise a power failure leaves indexes that say nothing of flushed records."""
    disk = RecordingDisk()
    log = open_log(tmp_path / "orders-0", LogConfig(index_interval_bytes=1), fs=disk)
    log.append_as_leader(batch("a"), 0)
    log.append_as_leader(batch("b"), 0)
    disk.synced.clear()
    log.flush(include_active=True)
    base = "00000000000000000000"
    assert {f"{base}.log", f"{base}.index", f"{base}.timeindex"} <= set(disk.synced)
