"""The record decoder: exact on valid bytes, CorruptRecord on all others, in both forms."""

from types import ModuleType

import pytest

from broker.errors import CorruptRecord
from broker.records.builder import encode_records, varint
from broker.records.record import RecordTuple

MAX_INT64 = 2**63 - 1

RECORDS: list[RecordTuple] = [
    (100, 1000, b"k0", b"v0", ()),
    (101, 990, None, b"a value without a key", ()),  # earlier than the first
    (103, 1000, b"tombstone", None, ()),  # after a gap
    (104, 1000 + 2**40, b"", b"", (("h", b"x"), ("", None), ("ü", b""))),
    (100 + 70_000, 1001, b"k" * 100, b"v" * 20_000, (("long", b"y" * 300),)),
]


def record(*fields: bytes) -> bytes:
    body = b"".join(fields)
    return varint(len(body)) + body


def test_decoded_records_are_those_that_were_encoded(decoder: ModuleType) -> None:
    data = encode_records(RECORDS, base_offset=100, base_timestamp=1000)

    assert decoder.decode_records(data, len(RECORDS), 100, 1000) == RECORDS


def test_columns_hold_the_same_as_records(decoder: ModuleType) -> None:
    data = encode_records(RECORDS, base_offset=100, base_timestamp=1000)

    columns = decoder.decode_columns(data, len(RECORDS), 100, 1000)
    starts, counts = columns.header_starts, columns.header_counts
    headers = [decoder.read_headers(data, *span) for span in zip(starts, counts, strict=True)]

    rows = (columns.offsets, columns.timestamps, columns.keys(), columns.values(), headers)
    assert list(zip(*rows, strict=True)) == RECORDS
    assert columns.data is data
    assert len(columns) == len(RECORDS)


def test_append_time_is_the_time_of_every_record(decoder: ModuleType) -> None:
    data = encode_records(RECORDS, base_offset=100, base_timestamp=1000)

    records = decoder.decode_records(data, len(RECORDS), 100, 1000, 77)
    columns = decoder.decode_columns(data, len(RECORDS), 100, 1000, 77)

    assert {timestamp for _, timestamp, *_ in records} == {77}
    assert set(columns.timestamps) == {77}


def test_timestamps_at_the_ends_of_int64_wrap_as_in_java(decoder: ModuleType) -> None:
    rows: list[RecordTuple] = [(0, -1, None, None, ()), (1, MAX_INT64, None, None, ())]
    data = encode_records(rows, base_offset=0, base_timestamp=-1)

    assert decoder.decode_records(data, 2, 0, -1) == rows
    assert list(decoder.decode_columns(data, 2, 0, -1).timestamps) == [-1, MAX_INT64]
    assert decoder.decode_records(data, 2, 0, MAX_INT64)[1][1] == -1


def test_no_records_are_an_empty_list(decoder: ModuleType) -> None:
    assert decoder.decode_records(b"", 0, 5, 5) == []
    assert len(decoder.decode_columns(b"", 0, 5, 5)) == 0


def test_header_keys_that_are_no_utf_8_are_replaced_as_in_java(decoder: ModuleType) -> None:
    data = record(b"\0\0\0\1\1", varint(1), varint(2), b"a\xff", varint(-1))

    assert decoder.decode_records(data, 1, 0, 0) == [(0, 0, None, None, (("a\ufffd", None),))]


GOOD = record(b"\0\0\0", varint(1), b"k", varint(2), b"vv", varint(0))

MALFORMED = {
    "nothing where a record should be": (b"", 1),
    "fewer records than counted": (GOOD * 2, 3),
    "more records than counted": (GOOD * 2, 1),
    "no records but bytes": (GOOD, 0),
    "a negative count": (GOOD, -1),
    "a count no memory could hold": (GOOD, 2**31 - 1),
    "cut in the value": (GOOD[:-2], 1),
    "cut before the header count": (GOOD[:-1], 1),
    "a record length too short": (b"\x02" + GOOD[1:], 1),
    "a record length too long": (varint(len(GOOD) + 5) + GOOD[1:], 1),
    "a negative record length": (varint(-9) + GOOD[1:], 1),
    "a key longer than the batch": (record(b"\0\0\0", varint(2**31 - 1), b"\1\0"), 1),
    "a key that swallows the next record": (record(b"\0\0\0", varint(9), b"\1\0") + GOOD, 2),
    "a value longer than the batch": (record(b"\0\0\0\1", varint(2**30), b"\0\0"), 1),
    "a length of more than five bytes": (record(b"\0\0\0" + b"\x80" * 5 + b"\0\1\0"), 1),
    "a varint without end": (record(b"\0" + b"\xff" * 30), 1),
    "a negative header count": (record(b"\0\0\0\1\1", varint(-1)), 1),
    "more headers than bytes": (record(b"\0\0\0\1\1", varint(2**30)), 1),
    "a header without a key": (record(b"\0\0\0\1\1", varint(1), varint(-1), varint(-1)), 1),
    "a header key beyond the batch": (record(b"\0\0\0\1\1", varint(1), varint(90), b"\1\1"), 1),
}


@pytest.mark.parametrize(("data", "count"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_records_are_corrupt(decoder: ModuleType, data: bytes, count: int) -> None:
    with pytest.raises(CorruptRecord):
        decoder.decode_records(data, count, 0, 0)
    with pytest.raises(CorruptRecord):
        decoder.decode_columns(data, count, 0, 0)


ODD = {
    "a negative offset delta": (record(b"\0\0", varint(-1), b"\1\1\0"), (-1, 0, None, None, ())),
    "a key length of -2": (record(b"\0\0\0", varint(-2), b"\1\0"), (0, 0, None, None, ())),
    "a value length of -2": (record(b"\0\0\0\1", varint(-2), b"\0"), (0, 0, None, None, ())),
    "a value length of -99": (record(b"\0\0\0\1", varint(-99), b"\0"), (0, 0, None, None, ())),
    "a key length beyond 32 bits": (
        record(b"\0\0\0\x82\x80\x80\x80\x70k\1\0"),
        (0, 0, b"k", None, ()),
    ),
    "a timestamp beyond 64 bits": (
        record(b"\0" + b"\xfe" + b"\xff" * 8 + b"\x7e\0\1\1\0"),
        (0, 2**62 - 1, None, None, ()),
    ),
    "a header value of -2": (
        record(b"\0\0\0\1\1", varint(1), varint(0), varint(-2)),
        (0, 0, None, None, (("", None),)),
    ),
}


@pytest.mark.parametrize(("data", "expected"), ODD.values(), ids=ODD.keys())
def test_odd_records_that_kafka_accepts_are_read_as_kafka_reads_them(
    decoder: ModuleType, data: bytes, expected: RecordTuple
) -> None:
    assert decoder.decode_records(data, 1, 0, 0) == [expected]
    columns = decoder.decode_columns(data, 1, 0, 0)
    assert (columns.offsets[0], columns.timestamps[0]) == expected[:2]
    assert (columns.keys()[0], columns.values()[0]) == expected[2:4]


def test_a_base_offset_without_room_for_deltas_is_corrupt(decoder: ModuleType) -> None:
    with pytest.raises(CorruptRecord, match="base offset"):
        decoder.decode_records(GOOD, 1, MAX_INT64, 0)


def test_the_error_says_which_record_and_what_was_expected(decoder: ModuleType) -> None:
    with pytest.raises(CorruptRecord, match=r"record 1: expected to end at byte \d+ .*, found"):
        decoder.decode_records(GOOD + b"\x16" + GOOD[1:] + b"\0", 2, 0, 0)
