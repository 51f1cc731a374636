"""Batch headers: read, iterate, check the crc and set fields without decoding records."""

import mmap
from dataclasses import replace
from pathlib import Path

import pytest

from broker.errors import CorruptRecord
from broker.records.batch import (
    Batch,
    check_crc,
    increment_sequence,
    iterate_batches,
    read_header,
)
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import HEADER_SIZE, LOG_ENTRY, Codec, TimestampType
from broker.records.legacy import build_messages
from broker.records.record import RecordTuple
from tests.records.golden import segments
from tests.support.batches import assign_offset_and_epoch, set_max_timestamp

RECORDS: list[RecordTuple] = [(7, 1000, b"k", b"v", ()), (9, 1005, None, b"w", ())]
PRODUCER = BatchSettings(producer_id=5, producer_epoch=1, base_sequence=2**31 - 2)


def single(data: bytes | bytearray) -> Batch:
    (batch,) = iterate_batches(data)
    return batch


def test_the_header_tells_offsets_times_and_producer() -> None:
    header = read_header(build_batch(RECORDS, PRODUCER))

    assert (header.base_offset, header.last_offset, header.next_offset) == (7, 9, 10)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1005)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 2**31 - 2)
    assert header.has_producer_id
    assert header.records_count == 2
    assert header.delete_horizon_ms is None
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert not header.is_transactional
    assert not header.is_control


def test_sequences_wrap_around_to_zero_after_the_largest_int32() -> None:
    assert read_header(build_batch(RECORDS, PRODUCER)).last_sequence == 0
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(0, 2**31 - 1) == 2**31 - 1


def test_a_batch_without_producer_has_no_sequence() -> None:
    header = read_header(build_batch(RECORDS))

    assert not header.has_producer_id
    assert header.last_sequence == -1


def test_the_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    data = build_batch(RECORDS, BatchSettings(delete_horizon_ms=123_456))

    assert read_header(data).delete_horizon_ms == 123_456
    assert [record.timestamp for record in single(data).records()] == [1000, 1005]


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_corrupt(number: int) -> None:
    header = read_header(build_batch(RECORDS))._replace(attributes=number)

    with pytest.raises(CorruptRecord, match=f"codec of 0 to 4, found {number}"):
        _ = header.codec


def test_a_header_of_another_format_is_refused() -> None:
    with pytest.raises(CorruptRecord, match="expected magic 2, found 1"):
        read_header(build_messages(RECORDS, magic=1))


def test_a_header_cut_short_is_refused_with_its_position() -> None:
    data = b"??" + build_batch(RECORDS)

    assert read_header(data, 2).base_offset == 7
    with pytest.raises(CorruptRecord, match=r"position 2: expected 61 bytes .*, found 60"):
        read_header(data[: 2 + HEADER_SIZE - 1], 2)


def test_a_header_with_an_impossible_length_is_refused() -> None:
    data = bytearray(build_batch(RECORDS))
    LOG_ENTRY.pack_into(data, 0, 7, 48)

    with pytest.raises(CorruptRecord, match="at least 49, found 48"):
        read_header(data)
    with pytest.raises(CorruptRecord, match="at least 49, found 48"):
        next(iterate_batches(data))


def test_batches_of_all_formats_may_follow_each_other() -> None:
    data = (
        build_messages(RECORDS, magic=0)
        + build_messages(RECORDS, magic=1, codec=Codec.GZIP)
        + build_batch(RECORDS)
    )

    batches = list(iterate_batches(data))

    assert [batch.magic for batch in batches] == [0, 0, 1, 2]
    assert [batch.base_offset for batch in batches] == [7, 9, 7, 7]
    assert [batch.last_offset for batch in batches] == [7, 9, 9, 9]
    assert [batch.max_timestamp for batch in batches] == [-1, -1, 1005, 1005]
    assert [batch.records_count for batch in batches] == [None, None, None, 2]
    assert b"".join(batch.view for batch in batches) == data
    assert all(batch.is_crc_valid() for batch in batches)


def test_iteration_can_start_and_end_inside_the_buffer() -> None:
    data = build_batch(RECORDS)

    batches = iterate_batches(data * 3, len(data), 2 * len(data))

    assert [batch.position for batch in batches] == [len(data)]
    assert not batches.is_cut_short


@pytest.mark.parametrize("missing", [1, 40, 61, 68, 72])
def test_a_batch_cut_short_ends_iteration_with_is_cut_short(missing: int) -> None:
    data = build_batch(RECORDS)
    batches = iterate_batches((data * 2)[:-missing])

    assert [batch.position for batch in batches] == [0]
    assert batches.is_cut_short
    assert batches.position == len(data)


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_a_format_from_the_future_is_corrupt(magic: int) -> None:
    data = bytearray(build_batch(RECORDS))
    data[16] = magic

    with pytest.raises(CorruptRecord, match=f"position 0: expected magic .*, found {magic}"):
        next(iterate_batches(data))


def test_a_mapped_file_is_read_in_place_and_can_be_closed_afterwards() -> None:
    path: Path = segments("magic2/txn-0")[0]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        offsets = [batch.last_offset for batch in iterate_batches(mapped)]
    assert offsets == sorted(offsets)
    assert offsets


def test_offset_and_epoch_are_stamped_without_breaking_the_crc() -> None:
    data = bytearray(b"??" + build_batch(RECORDS))

    assign_offset_and_epoch(memoryview(data), 2, 1_000_000, 42)

    header = read_header(data, 2)
    assert (header.base_offset, header.last_offset) == (1_000_000, 1_000_002)
    assert header.partition_leader_epoch == 42
    check_crc(single(data[2:]))


@pytest.mark.parametrize("codec", Codec)
def test_append_time_is_stamped_as_the_builder_would_have_written_it(codec: Codec) -> None:
    settings = replace(PRODUCER, codec=codec)
    data = bytearray(build_batch(RECORDS, settings))

    set_max_timestamp(data, 0, TimestampType.LOG_APPEND_TIME, 5_000)

    stamped = replace(settings, timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=5_000)
    assert data == build_batch(RECORDS, stamped)
    assert [record.timestamp for record in single(data).records()] == [5_000, 5_000]


def test_a_max_timestamp_that_is_right_already_changes_nothing() -> None:
    data = bytearray(build_batch(RECORDS))
    data[17:21] = b"crc?"

    set_max_timestamp(data, 0, TimestampType.CREATE_TIME, 1005)

    assert data[17:21] == b"crc?"


def test_a_wrong_crc_is_named_with_place_expected_and_found() -> None:
    data = bytearray(build_batch(RECORDS))
    data[-1] ^= 1

    with pytest.raises(CorruptRecord, match=r"position 0, last offset 9: expected crc \d+, found"):
        check_crc(single(data))


def test_records_that_cannot_be_read_are_named_with_their_batch() -> None:
    data = bytearray(build_batch(RECORDS))
    data[60] = 9  # the count

    with pytest.raises(
        CorruptRecord, match=r"batch at position 0, last offset 9: .* found a count of 9"
    ):
        single(data).records()
    with pytest.raises(
        CorruptRecord, match=r"batch at position 0, last offset 9: .* found a count of 9"
    ):
        single(data).columns()
