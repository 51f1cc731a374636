"""Compaction: keeps the latest record per key, removes tombstones and markers when they expire."""

import threading
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError
from broker.log.append import AppendOrigin
from broker.log.cleaner import Cleaner, CleaningAborted, group_segments
from broker.log.config import CleanerConfig, LogConfig
from broker.log.files import OpenFile
from broker.log.layout import OFFSET_INDEX, TIME_INDEX
from broker.log.log_cleaner import LogCleaner, measure
from broker.log.partition_log import PartitionLog
from broker.log.recovery import LoadFrom
from broker.records.builder import BatchSettings
from broker.records.layout import Codec
from broker.records.legacy import build_messages
from tests.log.support import (
    ABORT,
    COMMIT,
    NOW_MS,
    BreakingDisk,
    UnflushedDisk,
    batch,
    batches_of,
    files_of,
    keyed,
    marker,
    offsets_of,
    open_log,
    produced,
    values_of,
)

DAY_MS = 24 * 60 * 60 * 1000
COMPACT = frozenset({"compact"})
MEMORY = CleanerConfig(dedupe_buffer_size=24 * 1_000)


class GatedDisk(UnflushedDisk):
    """A disk on which the cleaner's first write waits until the test opens the gate."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def truncate(self, file: OpenFile, size: int) -> None:
        if file.path.suffix == ".cleaned":
            self.reached.set()
            assert self.opened.wait(10)
        super().truncate(file, size)


def compacted(**settings: object) -> LogConfig:
    return LogConfig(cleanup_policy=COMPACT, **settings)  # type: ignore[arg-type]


def clean(log: PartitionLog, memory: CleanerConfig = MEMORY, first_dirty: int = 0) -> int:
    """Clean all but the active segment; the new first dirty offset."""
    log.update_high_watermark(log.log_end_offset)
    cleaner = Cleaner(memory, lambda: None)
    return cleaner.clean(log, first_dirty, log.segments.active.base_offset)[0]


def filled(directory: Path, *batches: bytes, clock: ManualClock | None = None) -> PartitionLog:
    """A log with these batches in a closed segment, and an empty active one."""
    log = open_log(directory, compacted(), clock or ManualClock(NOW_MS))
    for data in batches:
        log.append_as_leader(data, 0)
    log.roll()
    return log


class TestKeys:
    def test_only_the_latest_record_of_a_key_stays(self, tmp_path: Path) -> None:
        log = filled(
            tmp_path / "orders-0",
            *[keyed(f"k{number % 3}", f"v{number}") for number in range(10)],
        )
        assert clean(log) == 10
        assert values_of(log) == ["v7", "v8", "v9"]
        assert offsets_of(log) == [7, 8, 9]
        assert log.log_end_offset == 10

    def test_batch_keeps_its_offsets_when_records_go(self, tmp_path: Path) -> None:
        log = filled(
            tmp_path / "orders-0",
            batch("a", "b", "c", keys=[b"1", b"2", b"3"]),
            batch("d", keys=[b"2"]),
        )
        clean(log)
        first, second = batches_of(log)
        assert (first.header.base_offset, first.last_offset) == (0, 2)
        assert [record.offset for record in first.records()] == [0, 2]
        assert first.is_crc_valid()
        assert values_of(log) == ["a", "c", "d"]
        assert second.header.base_offset == 3

    def test_every_offset_can_still_be_read_from(self, tmp_path: Path) -> None:
        log = filled(
            tmp_path / "orders-0",
            *[keyed(f"k{number % 4}", f"v{number}") for number in range(40)],
        )
        clean(log)
        for offset in range(40):
            found = log.read(offset, 1 << 20)
            assert found.records is not None

    @pytest.mark.parametrize("codec", list(Codec))
    def test_codec_of_a_batch_is_kept(self, codec: Codec, tmp_path: Path) -> None:
        settings = BatchSettings(codec=codec)
        log = filled(
            tmp_path / "orders-0",
            batch("a", "b", keys=[b"1", b"2"], settings=settings),
            keyed("1", "new"),
        )
        clean(log)
        assert batches_of(log)[0].codec is codec
        assert values_of(log) == ["b", "new"]

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_old_formats_are_compacted_in_their_format(
        self, magic: int, codec: Codec, tmp_path: Path
    ) -> None:
        log = open_log(tmp_path / "orders-0", compacted())
        rows = [(i, NOW_MS, key, b"v%d" % i, ()) for i, key in enumerate((b"a", b"b", b"a"))]
        log.append_as_follower(build_messages(rows, magic, codec))
        log.roll()
        clean(log)
        assert {found.magic for found in batches_of(log)} == {magic}
        assert values_of(log) == ["v1", "v2"]
        assert offsets_of(log) == [1, 2]

    def test_log_that_loses_nothing_keeps_its_bytes_and_indexes(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", compacted(index_interval_bytes=0))
        for number in range(20):
            log.append_as_leader(keyed(f"k{number}", f"v{number}"), 0)
        log.roll()
        before = (log.directory / f"{0:020d}.log").read_bytes()
        clean(log)
        assert (log.directory / f"{0:020d}.log").read_bytes() == before
        assert values_of(log) == [f"v{number}" for number in range(20)]

    def test_small_segments_become_one(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", compacted())
        for number in range(5):
            log.append_as_leader(keyed("same", f"v{number}"), 0)
            log.roll()
        clean(log)
        assert log.segments.base_offsets == (0, 5)
        assert values_of(log) == ["v4"]

    def test_segments_that_are_too_large_together_stay_apart(self, tmp_path: Path) -> None:
        size = len(keyed("k0", "v0"))
        log = open_log(tmp_path / "orders-0", compacted(segment_bytes=2 * size))
        for number in range(8):
            log.append_as_leader(keyed(f"k{number}", f"v{number}"), 0)
        groups = group_segments(log, 6, 6)
        assert [[s.base_offset for s in group] for group in groups] == [[0], [2], [4]]

    def test_cleaned_log_reopens_the_same(self, tmp_path: Path) -> None:
        log = filled(
            tmp_path / "orders-0",
            *[keyed(f"k{number % 3}", f"v{number}") for number in range(10)],
        )
        clean(log)
        log.close()
        indexes = files_of(log.directory, OFFSET_INDEX, TIME_INDEX)
        for load_from in (LoadFrom(), LoadFrom(is_clean=False)):
            reopened = open_log(log.directory, compacted(), load_from=load_from)
            assert values_of(reopened) == ["v7", "v8", "v9"]
            reopened.close()
            assert files_of(log.directory, OFFSET_INDEX, TIME_INDEX) == indexes


class TestBoundedMemory:
    def test_map_that_is_full_leaves_the_rest_for_the_next_round(self, tmp_path: Path) -> None:
        log = filled(
            tmp_path / "orders-0",
            *[keyed(f"k{number % 10}", f"v{number}") for number in range(30)],
        )
        tiny = CleanerConfig(dedupe_buffer_size=24 * 10, io_buffer_load_factor=0.5)
        dirty = clean(log, tiny)
        assert dirty == 5
        assert len(values_of(log)) == 30
        rounds = 1
        while dirty < 30:
            dirty = clean(log, tiny, first_dirty=dirty)
            rounds += 1
        assert rounds == 6
        assert set(values_of(log)[-10:]) == {f"v{number}" for number in range(20, 30)}

    def test_map_too_small_for_one_key_is_refused(self) -> None:
        with pytest.raises(ValueError, match="too small"):
            Cleaner(CleanerConfig(dedupe_buffer_size=24), lambda: None)


class TestTombstones:
    def test_tombstone_stays_until_its_horizon_and_then_goes(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = filled(tmp_path / "orders-0", keyed("a", "v"), keyed("a", None), clock=clock)
        clean(log)
        assert values_of(log) == [None]
        (kept,) = batches_of(log)
        assert kept.header.delete_horizon_ms == NOW_MS + DAY_MS
        assert kept.records()[0].timestamp == NOW_MS
        clock.advance(DAY_MS - 1)
        clean(log)
        assert values_of(log) == [None]
        clock.advance(1)
        clean(log)
        assert values_of(log) == []

    def test_horizon_is_set_once_and_not_moved(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = filled(tmp_path / "orders-0", keyed("a", None), clock=clock)
        clean(log)
        clock.advance(1_000)
        clean(log)
        assert batches_of(log)[0].header.delete_horizon_ms == NOW_MS + DAY_MS

    def test_records_keep_their_time_beside_a_horizon(self, tmp_path: Path) -> None:
        data = batch("x", "y", keys=[b"1", b"2"], timestamp=NOW_MS - 50)
        log = filled(tmp_path / "orders-0", data, keyed("3", None))
        clean(log)
        times = [record.timestamp for found in batches_of(log) for record in found.records()]
        assert times == [NOW_MS - 50, NOW_MS - 49, NOW_MS]


class TestTransactions:
    def transactional(self, directory: Path, clock: ManualClock) -> PartitionLog:
        log = open_log(directory, compacted(), clock)
        first = produced("gone", producer_id=1, transactional=True)
        second = produced("kept", producer_id=2, transactional=True)
        log.append_as_leader(first, 0)
        log.append_as_leader(second, 0)
        log.append_as_leader(marker(ABORT, producer_id=1), 0, AppendOrigin.COORDINATOR)
        log.append_as_leader(marker(COMMIT, producer_id=2), 0, AppendOrigin.COORDINATOR)
        log.append_as_leader(produced("later", producer_id=2, sequence=1), 0)
        log.append_as_leader(produced("later", producer_id=1, sequence=1), 0)
        log.roll()
        return log

    def test_aborted_records_go_and_do_not_hide_committed_ones(self, tmp_path: Path) -> None:
        log = self.transactional(tmp_path / "orders-0", ManualClock(NOW_MS))
        clean(log)
        assert "gone" not in values_of(log)

    def test_marker_stays_with_a_horizon_while_consumers_may_need_it(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = self.transactional(tmp_path / "orders-0", clock)
        clean(log)  # removes the aborted records
        clean(log)  # the abort marker's transaction is empty now, so it gets a delete horizon
        markers = [found for found in batches_of(log) if found.is_control]
        assert [found.header.producer_id for found in markers] == [1, 2]
        assert markers[0].header.delete_horizon_ms == NOW_MS + DAY_MS
        clock.advance(DAY_MS)
        clean(log)
        assert not [found for found in batches_of(log) if found.is_control]

    def test_last_batch_of_a_producer_stays_as_an_empty_one(self, tmp_path: Path) -> None:
        log = filled(tmp_path / "orders-0", produced("old"), keyed("k0", "new"))
        clean(log)
        first, _ = batches_of(log)
        assert first.header.records_count == 0
        assert (first.header.producer_id, first.header.base_sequence) == (7, 0)
        assert values_of(log) == ["new"]
        assert log.append_as_leader(produced("next", sequence=1), 0).first_offset == 2

    def test_aborted_transactions_whose_records_remain_stay_in_the_index(
        self, tmp_path: Path
    ) -> None:
        log = self.transactional(tmp_path / "orders-0", ManualClock(NOW_MS))
        clean(log)
        assert [txn.producer_id for txn in log.collect_aborted_txns(0, 100)] == [1]
        clean(log)
        assert log.collect_aborted_txns(0, 100) == []

    def test_open_transaction_is_not_cleaned(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", compacted())
        log.append_as_leader(keyed("k0", "v"), 0)
        log.roll()
        log.append_as_leader(produced("open", transactional=True), 0)
        log.roll()
        log.update_high_watermark(2)
        assert measure(log, None).first_uncleanable_offset == 1


class TestWhatIsCleaned:
    def log(self, directory: Path, config: LogConfig, clock: ManualClock) -> PartitionLog:
        log = open_log(directory, config, clock)
        for number in range(4):
            log.append_as_leader(keyed("k", f"v{number}", NOW_MS + 1_000 * number), 0)
            log.roll()
        log.update_high_watermark(4)
        return log

    def test_dirty_ratio_decides(self, tmp_path: Path) -> None:
        config = compacted(min_cleanable_dirty_ratio=0.5)
        log = self.log(tmp_path / "orders-0", config, ManualClock(NOW_MS))
        assert measure(log, 0).is_due
        assert measure(log, 0).cleanable_ratio == 1.0
        assert measure(log, 2).cleanable_ratio == 0.5
        assert not measure(log, 2).is_due

    def test_young_segments_wait(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS + 3_500)
        config = compacted(min_compaction_lag_ms=2_000)
        log = self.log(tmp_path / "orders-0", config, clock)
        assert measure(log, 0).first_uncleanable_offset == 2

    def test_record_that_waits_too_long_makes_the_log_due(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        config = compacted(max_compaction_lag_ms=10_000, min_cleanable_dirty_ratio=1.0)
        log = self.log(tmp_path / "orders-0", config, clock)
        assert not measure(log, 3).is_due
        clock.advance(13_001)
        assert measure(log, 3).is_due

    @pytest.mark.parametrize("checkpoint", [-7, 99])
    def test_checkpoint_outside_of_the_log_counts_as_its_start(
        self, checkpoint: int, tmp_path: Path
    ) -> None:
        log = self.log(tmp_path / "orders-0", compacted(), ManualClock(NOW_MS))
        log.maybe_increment_log_start_offset(1)
        assert measure(log, checkpoint).first_dirty_offset == 1

    def test_filthiest_log_goes_first_and_is_noted_in_the_checkpoint(self, tmp_path: Path) -> None:
        log = self.log(tmp_path / "orders-0", compacted(), ManualClock(NOW_MS))
        cleaner = LogCleaner(MEMORY, UnflushedDisk())
        assert cleaner.clean_filthiest([log])
        assert not cleaner.clean_filthiest([log])
        text = (tmp_path / "cleaner-offset-checkpoint").read_text()
        assert text == "0\n1\norders 0 4\n"
        assert values_of(log) == ["v3"]
        assert cleaner.last_stats.messages_read == 4
        assert cleaner.last_stats.messages_written == 1

    def test_paused_partition_is_left_alone(self, tmp_path: Path) -> None:
        log = self.log(tmp_path / "orders-0", compacted(), ManualClock(NOW_MS))
        cleaner = LogCleaner(MEMORY, UnflushedDisk())
        with cleaner.paused(log.partition):
            assert not cleaner.clean_filthiest([log])
        assert cleaner.clean_filthiest([log])

    def test_pausing_aborts_a_cleaning_under_way_and_waits_for_it(self, tmp_path: Path) -> None:
        disk = GatedDisk()
        log = open_log(tmp_path / "orders-0", compacted(), ManualClock(NOW_MS), disk)
        for number in range(4):
            log.append_as_leader(keyed("k", f"v{number}"), 0)
            log.roll()
        log.update_high_watermark(4)
        cleaner = LogCleaner(MEMORY, disk)
        thread = threading.Thread(target=cleaner.clean_filthiest, args=([log],))
        thread.start()
        assert disk.reached.wait(10)
        with cleaner.paused_if_idle(log.partition) as is_idle:
            assert not is_idle
        disk.opened.set()
        with cleaner.paused(log.partition):
            assert len(values_of(log)) == 4
            assert not list(log.directory.glob("*.cleaned"))
        thread.join(10)
        assert not thread.is_alive()

    def test_aborted_cleaning_leaves_the_log_as_it_was(self, tmp_path: Path) -> None:
        log = self.log(tmp_path / "orders-0", compacted(), ManualClock(NOW_MS))
        calls = 0

        def abort_later() -> None:
            nonlocal calls
            calls += 1
            if calls > 6:
                raise CleaningAborted

        before = sorted(path.name for path in log.directory.iterdir())
        with pytest.raises(CleaningAborted):
            Cleaner(MEMORY, abort_later).clean(log, 0, 4)
        assert sorted(path.name for path in log.directory.iterdir()) == before
        assert len(values_of(log)) == 4

    def test_damaged_log_is_marked_and_not_tried_again(self, tmp_path: Path) -> None:
        log = self.log(tmp_path / "orders-0", compacted(), ManualClock(NOW_MS))
        path = log.directory / f"{1:020d}.log"
        path.write_bytes(path.read_bytes()[:61] + b"\xff" * 10)
        cleaner = LogCleaner(MEMORY, UnflushedDisk())
        assert cleaner.clean_filthiest([log])
        assert not cleaner.clean_filthiest([log])
        assert not list(log.directory.glob("*.cleaned"))
        assert log.log_end_offset == 4

    def test_failed_checkpoint_of_the_cleaner_takes_the_log_offline(self, tmp_path: Path) -> None:
        log = self.log(tmp_path / "orders-0", compacted(), ManualClock(NOW_MS))
        cleaner = LogCleaner(MEMORY, BreakingDisk(fails_at=1))
        assert cleaner.clean_filthiest([log])
        with pytest.raises(ApiError, match="offline"):
            log.read(0, 100)
