"""Logs cut at every byte, flipped bits, zero tails, foreign indexes: intact batches survive."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.log.config import LogConfig
from broker.log.layout import LOG, OFFSET_INDEX, TIME_INDEX
from broker.log.offset_lookup import offset_for_timestamp
from broker.log.partition_log import PartitionLog
from broker.log.recovery import LoadFrom
from broker.records.batch import Batch, iterate_batches
from tests.log.support import (
    COMMIT,
    GOLDEN,
    NOW_MS,
    UNCLEAN,
    batch,
    everything,
    files_of,
    golden_config,
    golden_copy,
    marker,
    open_log,
    produced,
    values_of,
)

SMALL = LogConfig(index_interval_bytes=100)
ACTIVE = "00000000000000000000.log"


def write_log(directory: Path) -> bytes:
    """A log of plain, idempotent and transactional batches, left as a killed process leaves it."""
    log = open_log(directory, SMALL)
    log.append_as_leader(batch("a", "b", "c"), 0)
    log.append_as_leader(produced("d", "e"), 0)
    log.append_as_leader(produced("f", sequence=2), 1)
    log.append_as_leader(produced("g", producer_id=8, transactional=True), 1)
    log.append_as_follower(stamped(marker(COMMIT, producer_id=8), log.log_end_offset, 1))
    log.append_as_leader(batch("h", "i"), 2)
    return (directory / ACTIVE).read_bytes()


def stamped(data: bytes, offset: int, epoch: int) -> bytes:
    head = offset.to_bytes(8, "big") + data[8:12] + epoch.to_bytes(4, "big")
    return head + data[16:]


def whole_batches(data: bytes, limit: int) -> list[Batch]:
    """The batches of the undamaged log that end at or before `limit`."""
    return [found for found in iterate_batches(data) if found.end_position <= limit]


def test_log_cut_at_every_byte_keeps_every_whole_batch(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    data = write_log(directory)
    for size in range(len(data) + 1):
        (directory / ACTIVE).write_bytes(data[:size])
        log = open_log(directory, SMALL, load_from=UNCLEAN)
        kept = whole_batches(data, size)
        assert everything(log) == b"".join(bytes(found.view) for found in kept)
        assert log.log_end_offset == (kept[-1].next_offset if kept else 0)


def test_log_cut_at_every_byte_takes_appends_again(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    data = write_log(directory)
    for size in range(0, len(data), 7):
        (directory / ACTIVE).write_bytes(data[:size])
        log = open_log(directory, SMALL, load_from=UNCLEAN)
        offset = log.log_end_offset
        assert log.append_as_leader(batch("again"), 5).first_offset == offset
        log.close()
        reopened = open_log(directory, SMALL)
        assert values_of(reopened)[-1] == "again"
        reopened.close()


def test_any_flipped_bit_leaves_every_batch_before_it(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    data = write_log(directory)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << random.Random(position).randrange(8)
        (directory / ACTIVE).write_bytes(damaged)
        log = open_log(directory, SMALL, load_from=UNCLEAN)
        before = b"".join(bytes(found.view) for found in whole_batches(data, position))
        assert everything(log)[: len(before)] == before, position


def test_producer_state_survives_a_torn_tail(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    data = write_log(directory)
    (directory / ACTIVE).write_bytes(data[:-3])
    log = open_log(directory, SMALL, load_from=UNCLEAN)
    assert log.append_as_leader(produced("f", sequence=2), 2).first_offset == 5  # a retry
    assert log.append_as_leader(produced("next", sequence=3), 2).first_offset == 8


@pytest.mark.parametrize("name", ["torn-0", "zerotail-0"])
def test_golden_damaged_tail_is_cut_to_the_undamaged_log(name: str, tmp_path: Path) -> None:
    copy = golden_copy(GOLDEN / "corrupt" / name, tmp_path / "orders-0")
    log = open_log(copy, golden_config(GOLDEN / "magic2" / "rolled-0"), load_from=UNCLEAN)
    original = b"".join(files_of(GOLDEN / "magic2" / "rolled-0", LOG).values())
    end = 1500 if name == "zerotail-0" else 1490
    assert log.log_end_offset == end
    assert original.startswith(everything(log))


def test_golden_flipped_bit_drops_the_rest_of_the_log(tmp_path: Path) -> None:
    copy = golden_copy(GOLDEN / "corrupt" / "flipped-0", tmp_path / "orders-0")
    log = open_log(copy, golden_config(GOLDEN / "magic2" / "rolled-0"), load_from=UNCLEAN)
    assert 340 <= log.log_end_offset < 670
    original = b"".join(files_of(GOLDEN / "magic2" / "rolled-0", LOG).values())
    assert original.startswith(everything(log))
    assert not (copy / "00000000000000000670.log").exists()


def test_golden_wrong_index_entries_are_found_and_rebuilt_when_used(tmp_path: Path) -> None:
    copy = golden_copy(GOLDEN / "corrupt" / "badindex-0", tmp_path / "orders-0")
    log = open_log(copy, golden_config(GOLDEN / "magic2" / "rolled-0"))
    log.update_high_watermark(log.log_end_offset)
    for offset in range(1500):
        found = log.read(offset, 1, min_one_message=True)
        assert found.records is not None
        header = next(iterate_batches(found.records.read())).header
        assert header.base_offset <= offset <= header.last_offset
    for kind in (OFFSET_INDEX, TIME_INDEX):
        name = f"00000000000000000340{kind}"
        expected = (GOLDEN / "magic2" / "rolled-0" / name).read_bytes()
        assert (copy / name).read_bytes() == expected


def zeros(original: bytes) -> bytes:
    return bytes(len(original))


def preallocated(original: bytes) -> bytes:
    return original + bytes(10_000)


def cut_inside_an_entry(original: bytes) -> bytes:
    return original[:-3]


def foreign(original: bytes) -> bytes:
    return random.Random(1).randbytes(len(original))


def half(original: bytes) -> bytes:
    size = 8 if len(original) % 12 else 12
    return original[: len(original) // 2 // size * size]


def empty(original: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [zeros, cut_inside_an_entry, foreign, half, empty])
@pytest.mark.parametrize("kind", [OFFSET_INDEX, TIME_INDEX])
def test_damaged_index_of_a_clean_log_never_hides_a_record(
    damage: object, kind: str, tmp_path: Path
) -> None:
    assert callable(damage)
    golden = GOLDEN / "magic2" / "rolled-0"
    copy = golden_copy(golden, tmp_path / "orders-0")
    for path in copy.glob(f"*{kind}"):
        path.write_bytes(damage(path.read_bytes()))
    log = open_log(copy, golden_config(golden))
    log.update_high_watermark(log.log_end_offset)
    assert log.log_end_offset == 1500
    for offset in range(0, 1500, 7):
        found = log.read(offset, 1, min_one_message=True)
        assert found.records is not None
        header = next(iterate_batches(found.records.read())).header
        assert header.base_offset <= offset <= header.last_offset
    times = [segment.largest_timestamp for segment in log.segments]
    shutil.rmtree(copy)
    original = open_log(golden_copy(golden, tmp_path / "orders-0"), golden_config(golden))
    assert times == [segment.largest_timestamp for segment in original.segments]


@pytest.mark.parametrize("damage", [zeros, preallocated, cut_inside_an_entry, foreign, half, empty])
def test_damaged_indexes_of_an_unclean_log_are_rebuilt_byte_for_byte(
    damage: object, tmp_path: Path
) -> None:
    assert callable(damage)
    golden = GOLDEN / "magic2" / "rolled-0"
    copy = golden_copy(golden, tmp_path / "orders-0")
    for path in [*copy.glob(f"*{OFFSET_INDEX}"), *copy.glob(f"*{TIME_INDEX}")]:
        path.write_bytes(damage(path.read_bytes()))
    log = open_log(copy, golden_config(golden), load_from=UNCLEAN)
    log.close()
    for kind in (OFFSET_INDEX, TIME_INDEX):
        assert files_of(copy, kind) == files_of(golden, kind)


def test_missing_indexes_are_rebuilt_also_after_a_clean_stop(tmp_path: Path) -> None:
    golden = GOLDEN / "magic2" / "rolled-0"
    copy = golden_copy(golden, tmp_path / "orders-0")
    for path in [*copy.glob(f"*{OFFSET_INDEX}"), *copy.glob(f"*{TIME_INDEX}")]:
        path.unlink()
    open_log(copy, golden_config(golden)).close()
    for kind in (OFFSET_INDEX, TIME_INDEX):
        assert files_of(copy, kind) == files_of(golden, kind)


def with_a_flipped_bit(kind: str, tmp_path: Path) -> Iterator[PartitionLog]:
    """The same log repeatedly, each time with another byte of an index damaged."""
    golden = GOLDEN / "magic2" / "rolled-0"
    copy = golden_copy(golden, tmp_path / "orders-0")
    path = copy / f"00000000000000000340{kind}"
    original = path.read_bytes()
    for position in range(len(original)):
        damaged = bytearray(original)
        damaged[position] ^= 1 << random.Random(position).randrange(8)
        path.write_bytes(damaged)
        yield open_log(copy, golden_config(golden))


def assert_found_by_time(log: PartitionLog, offset: int) -> None:
    by_time = offset_for_timestamp(log, NOW_MS + 10 * offset)
    assert by_time is not None
    assert by_time.offset == offset


@pytest.mark.parametrize("kind", [OFFSET_INDEX, TIME_INDEX])
def test_any_flipped_bit_in_an_index_hides_no_record(kind: str, tmp_path: Path) -> None:
    for log in with_a_flipped_bit(kind, tmp_path):
        log.update_high_watermark(log.log_end_offset)
        for offset in range(340, 670, 10):
            found = log.read(offset, 1, min_one_message=True)
            assert found.records is not None
            assert next(iterate_batches(found.records.read())).header.base_offset == offset
            assert_found_by_time(log, offset)


@pytest.mark.parametrize("kind", [OFFSET_INDEX, TIME_INDEX])
def test_regression_flipped_bit_in_an_index_hides_no_time(kind: str, tmp_path: Path) -> None:
    """A search by time that met a wrong offset index took the whole directory offline."""
    for log in with_a_flipped_bit(kind, tmp_path):
        for offset in range(340, 670, 10):
            assert_found_by_time(log, offset)


def test_damaged_epoch_checkpoint_is_made_again_from_the_log(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    write_log(directory)
    log = open_log(directory, SMALL, load_from=UNCLEAN)
    entries = log.leader_epochs.entries
    assert len(entries) == 3
    log.close()
    (directory / "leader-epoch-checkpoint").write_bytes(b"0\n1\n\xff")
    assert open_log(directory, SMALL).leader_epochs.entries == entries


def test_epochs_that_were_not_written_before_a_crash_are_found_in_the_log(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    for epoch in (0, 3, 4):
        log.assign_epoch_start_offset(epoch, log.log_end_offset)
        log.append_as_leader(batch("x"), epoch)
    assert not (directory / "leader-epoch-checkpoint").exists()
    recovered = open_log(directory, SMALL, load_from=UNCLEAN)
    assert recovered.leader_epochs.entries == ((0, 0), (3, 1), (4, 2))


def test_flushed_log_has_its_epochs_in_the_file(tmp_path: Path) -> None:
    """Batches before the recovery point are not read again after a crash."""
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    log.append_as_leader(batch("x"), 5)
    log.flush()
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n1\n5 0\n"


def test_index_without_a_log_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    write_log(directory)
    orphan = directory / "00000000000000000099.index"
    orphan.write_bytes(bytes(8))
    open_log(directory, SMALL)
    assert not orphan.exists()


def test_damaged_snapshot_is_dropped_and_the_state_read_from_the_log(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    log.append_as_leader(produced("a", "b"), 0)
    log.close()
    snapshot = directory / "00000000000000000002.snapshot"
    snapshot.write_bytes(snapshot.read_bytes()[:-1] + b"\x07")
    reopened = open_log(directory, SMALL)
    assert reopened.append_as_leader(produced("a", "b"), 0).first_offset == 0
    assert reopened.log_end_offset == 2


def test_segments_below_the_recovery_point_are_not_read_again(tmp_path: Path) -> None:
    golden = GOLDEN / "magic2" / "rolled-0"
    copy = golden_copy(GOLDEN / "corrupt" / "flipped-0", tmp_path / "orders-0")
    load_from = LoadFrom(is_clean=False, recovery_point=670)
    log = open_log(copy, golden_config(golden), load_from=load_from)
    assert log.log_end_offset == 1500
