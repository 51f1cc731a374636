"""Properties of the log for any appends and any reads."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.log.cleaner import Cleaner
from broker.log.config import CleanerConfig, LogConfig
from broker.log.files import DISK
from broker.log.layout import LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX
from broker.log.leader_epochs import LeaderEpochs
from broker.log.offset_index import OffsetIndex
from broker.log.offset_lookup import offset_for_timestamp
from broker.log.offset_map import BYTES_PER_ENTRY, OffsetMap
from broker.log.offsets import FetchIsolation
from broker.log.partition_log import PartitionLog
from broker.log.producer_snapshot import SnapshotEntry, decode_snapshot, encode_snapshot
from broker.log.recovery import LoadFrom
from broker.log.time_index import TimeIndex
from broker.log.truncation import truncate_to
from broker.records.batch import iterate_batches
from tests.log.support import (
    NOW_MS,
    UnflushedDisk,
    batch,
    everything,
    files_of,
    keyed,
    open_log,
    values_of,
)

EXAMPLES = 100
INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(
    gaps=st.lists(st.integers(1, 50), max_size=60),
    asked=st.lists(st.integers(0, 3_000), min_size=1, max_size=20),
)
@settings(max_examples=EXAMPLES)
def test_offset_index_lookup_agrees_with_a_linear_scan(gaps: list[int], asked: list[int]) -> None:
    with scratch() as directory:
        index = OffsetIndex(directory / "index", 0, 10_000, DISK)
        entries, offset = [(0, 0)], 0
        for gap in gaps:
            offset += gap
            index.append(offset, offset * 3)
            entries.append((offset, offset * 3))
        for target in asked:
            assert index.lookup(target) == max(e for e in entries if e[0] <= target)
            beyond = [e[0] for e in entries[1:] if e[1] > target]
            assert index.first_offset_beyond(target) == (min(beyond) if beyond else None)


@given(
    times=st.lists(st.integers(0, 500), max_size=60),
    asked=st.lists(st.integers(-1, 501), min_size=1, max_size=20),
)
@settings(max_examples=EXAMPLES)
def test_time_index_lookup_agrees_with_a_linear_scan(times: list[int], asked: list[int]) -> None:
    with scratch() as directory:
        index = TimeIndex(directory / "index", 0, 10_000, DISK)
        entries, largest = [(-1, 0)], -1
        for offset, time in enumerate(times):
            index.maybe_append(max(time, largest), offset)
            if time > largest:
                largest = time
                entries.append((time, offset))
        for target in asked:
            assert index.lookup(target) == max(e for e in entries if e[0] <= target)


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=12)


def filled(directory: Path, counts: list[int], config: LogConfig) -> PartitionLog:
    log = open_log(directory, config)
    for number, count in enumerate(counts):
        values = [f"{number}.{index}" for index in range(count)]
        log.append_as_leader(batch(*values, timestamp=NOW_MS + number * 7 % 23), number // 3)
    log.update_high_watermark(log.log_end_offset)
    return log


@given(counts=sizes, segment_bytes=st.integers(150, 900), interval=st.integers(0, 400))
@settings(max_examples=EXAMPLES)
def test_reading_from_any_offset_finds_the_batch_that_holds_it(
    counts: list[int], segment_bytes: int, interval: int
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
    with scratch() as directory:
        log = filled(directory / "orders-0", counts, config)
        for offset in range(log.log_end_offset):
            found = log.read(offset, 1, min_one_message=True)
            assert found.records is not None
            header = next(iterate_batches(found.records.read())).header
            assert header.base_offset <= offset <= header.last_offset


@given(counts=sizes, segment_bytes=st.integers(150, 900), interval=st.integers(0, 400))
@settings(max_examples=EXAMPLES)
def test_recovery_of_an_undamaged_log_gives_the_files_of_a_clean_stop(
    counts: list[int], segment_bytes: int, interval: int
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
    kinds = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)
    with scratch() as directory:
        filled(directory / "clean", counts, config).close()
        filled(directory / "killed", counts, config)
        unclean = LoadFrom(is_clean=False)
        open_log(directory / "killed", config, load_from=unclean).close()
        assert files_of(directory / "killed", *kinds) == files_of(directory / "clean", *kinds)


@given(counts=sizes, cut=st.integers(0, 60), segment_bytes=st.integers(150, 900))
@settings(max_examples=EXAMPLES)
def test_truncation_leaves_exactly_the_whole_batches_below(
    counts: list[int], cut: int, segment_bytes: int
) -> None:
    with scratch() as directory:
        log = filled(directory / "orders-0", counts, LogConfig(segment_bytes=segment_bytes))
        before = list(iterate_batches(everything(log)))
        end = min(cut, log.log_end_offset)
        truncate_to(log, cut)
        expected = b"".join(bytes(found.view) for found in before if found.last_offset < end)
        assert everything(log) == expected
        assert log.log_end_offset == end
        log.close()
        reopened = open_log(directory / "orders-0")
        assert everything(reopened) == expected


@given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=15),
    asked=st.integers(-1, 41),
    segment_bytes=st.integers(150, 900),
)
@settings(max_examples=EXAMPLES)
def test_offset_for_a_time_agrees_with_a_linear_scan(
    times: list[int], asked: int, segment_bytes: int
) -> None:
    with scratch() as directory:
        config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=0)
        log = open_log(directory / "orders-0", config)
        for time in times:
            log.append_as_leader(batch("x", timestamp=NOW_MS + time), 0)
        found = offset_for_timestamp(log, NOW_MS + asked)
        expected = next((i for i, time in enumerate(times) if time >= asked), None)
        assert (None if found is None else found.offset) == expected


@given(
    writes=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30),
    segment_bytes=st.integers(150, 900),
    keys_in_memory=st.integers(2, 8),
)
@settings(max_examples=EXAMPLES)
def test_compaction_never_changes_the_latest_value_of_a_key(
    writes: list[tuple[int, bool]], segment_bytes: int, keys_in_memory: int
) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=segment_bytes)
    with scratch() as directory:
        clock = ManualClock(NOW_MS)
        log = open_log(directory / "orders-0", config, clock)
        state: dict[str, str | None] = {}
        for number, (key, is_tombstone) in enumerate(writes):
            value = None if is_tombstone else f"v{number}"
            log.append_as_leader(keyed(f"k{key}", value), 0)
            state[f"k{key}"] = value
        log.roll()
        log.update_high_watermark(log.log_end_offset)
        end = log.segments.active.base_offset
        memory = CleanerConfig(
            dedupe_buffer_size=BYTES_PER_ENTRY * keys_in_memory, io_buffer_load_factor=1.0
        )
        cleaner, dirty = Cleaner(memory, lambda: None), 0
        while dirty < end:
            dirty = cleaner.clean(log, dirty, end)[0]
        seen: dict[str, str | None] = {}
        for found in iterate_batches(everything(log)):
            for record in found.records():
                name = (record.key or b"").decode()
                seen[name] = None if record.value is None else record.value.decode()
        assert seen == state
        clock.advance(24 * 60 * 60 * 1000)
        dirty = 0
        while dirty < end:
            dirty = cleaner.clean(log, dirty, end)[0]
        live = {value for value in values_of(log) if value is not None}
        assert live >= {value for value in state.values() if value is not None}
        assert log.log_end_offset == len(writes)


@given(
    assigned=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 40)), max_size=12),
    epoch=st.integers(-1, 9),
)
@settings(max_examples=EXAMPLES)
def test_leader_epochs_always_rise_in_both_numbers(
    assigned: list[tuple[int, int]], epoch: int
) -> None:
    with scratch() as directory:
        epochs = LeaderEpochs(directory, UnflushedDisk())
        for entry in assigned:
            epochs.assign(*entry)
        entries = epochs.entries
        for lower, higher in pairwise(entries):
            assert lower.epoch < higher.epoch
            assert lower.start_offset < higher.start_offset
        found, end = epochs.end_offset_for(epoch, 100)
        assert found <= epoch
        assert end in {-1, 100, *(entry.start_offset for entry in entries)}


@given(puts=st.lists(st.tuples(st.binary(max_size=3), INT64), max_size=50))
@settings(max_examples=EXAMPLES)
def test_offset_map_is_a_dictionary(puts: list[tuple[bytes, int]]) -> None:
    offsets, expected = OffsetMap(BYTES_PER_ENTRY * 50), {}
    for key, offset in puts:
        offsets.put(key, offset)
        expected[key] = offset
    assert {key: offsets.get(key) for key in expected} == expected
    assert offsets.size == len(expected)


entries = st.builds(
    SnapshotEntry,
    INT64,
    st.integers(-(2**15), 2**15 - 1),
    st.integers(-(2**31), 2**31 - 1),
    INT64,
    st.integers(-(2**31), 2**31 - 1),
    INT64,
    st.integers(-(2**31), 2**31 - 1),
    INT64,
)


@given(producers=st.lists(entries, max_size=20))
@settings(max_examples=EXAMPLES)
def test_snapshot_reads_back_as_it_was_written(producers: list[SnapshotEntry]) -> None:
    assert decode_snapshot(encode_snapshot(producers), Path("snapshot")) == producers


@given(counts=sizes, max_bytes=st.integers(1, 600))
@settings(max_examples=EXAMPLES)
def test_follower_that_copies_in_any_fetch_size_has_the_leaders_files(
    counts: list[int], max_bytes: int
) -> None:
    config = LogConfig(index_interval_bytes=100)
    with scratch() as directory:
        leader = filled(directory / "leader", counts, config)
        follower = open_log(directory / "follower", config)
        while follower.log_end_offset < leader.log_end_offset:
            found = leader.read(
                follower.log_end_offset, max_bytes, FetchIsolation.LOG_END, min_one_message=True
            )
            assert found.records is not None
            follower.append_as_follower(found.records.read())
        assert follower.leader_epochs.entries == leader.leader_epochs.entries
        leader.close()
        follower.close()
        kinds = (LOG, OFFSET_INDEX, TIME_INDEX)
        assert files_of(directory / "follower", *kinds) == files_of(directory / "leader", *kinds)
