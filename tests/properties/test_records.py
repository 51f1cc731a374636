"""Batches round-trip, and malformed bytes raise only CorruptRecord."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptRecord
from broker.records.batch import iterate_batches, read_header
from broker.records.builder import BatchSettings, build_batch, encode_records, varint
from broker.records.compression import compress, decompress
from broker.records.layout import Codec
from broker.records.legacy import build_messages, read_crcs
from broker.records.record import RecordColumns, RecordTuple
from tests.records.forms import FORMS, PURE
from tests.records.golden import segments

MAX_INT64 = 2**63 - 1
MAX_BYTES = 1_000_000
OLD_CODECS = [codec for codec in Codec if codec is not Codec.ZSTD]

spans = st.none() | st.binary(max_size=200)
header_keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
headers = st.lists(st.tuples(header_keys, spans), max_size=3).map(tuple)
timestamps = st.integers(-1, MAX_INT64) | st.integers(1_700_000_000_000, 1_700_000_100_000)


@st.composite
def record_lists(draw: st.DrawFn) -> list[RecordTuple]:
    """Records that one batch can hold: increasing offsets, everything else arbitrary."""
    offset = draw(st.integers(0, 2**62))
    rows = []
    for gap in draw(st.lists(st.just(1) | st.integers(1, 10_000), min_size=1, max_size=20)):
        offset += gap
        rows.append((offset, draw(timestamps), draw(spans), draw(spans), draw(headers)))
    return rows


def rows_of(columns: RecordColumns, form: ModuleType) -> list[RecordTuple]:
    starts, counts = columns.header_starts, columns.header_counts
    spans = zip(starts, counts, strict=True)
    headers = [form.read_headers(columns.data, start, count) for start, count in spans]
    fields = (columns.offsets, columns.timestamps, columns.keys(), columns.values(), headers)
    return list(zip(*fields, strict=True))


@given(record_lists(), st.sampled_from(Codec))
def test_a_batch_gives_back_its_records(records: list[RecordTuple], codec: Codec) -> None:
    (batch,) = iterate_batches(build_batch(records, BatchSettings(codec=codec)))

    assert batch.is_crc_valid()
    assert batch.record_tuples() == records
    assert (batch.base_offset, batch.last_offset) == (records[0][0], records[-1][0])
    assert batch.max_timestamp == max(record[1] for record in records)


@given(record_lists(), st.none() | timestamps)
def test_all_forms_of_the_decoder_agree(records: list[RecordTuple], append: int | None) -> None:
    base_offset, base_timestamp = records[0][:2]
    data = encode_records(records, base_offset, base_timestamp)
    arguments = (data, len(records), base_offset, base_timestamp, append)
    expected = [
        (offset, timestamp if append is None else append, *rest)
        for offset, timestamp, *rest in records
    ]

    for form in FORMS:
        assert form.decode_records(*arguments) == expected
        assert rows_of(form.decode_columns(*arguments), form) == expected


@given(record_lists(), st.sampled_from([0, 1]), st.sampled_from(OLD_CODECS))
def test_old_formats_give_back_what_they_can_hold(
    records: list[RecordTuple], magic: int, codec: Codec
) -> None:
    expected = [
        (offset, timestamp if magic else -1, key, value, ())
        for offset, timestamp, key, value, _ in records
    ]

    batches = list(iterate_batches(build_messages(records, magic, codec)))

    assert all(batch.is_crc_valid() for batch in batches)
    assert [row for batch in batches for row in batch.record_tuples()] == expected


# Bytes that resemble records, so that decoding goes some way: small numbers, then anything.
near_records = st.lists(
    st.one_of(st.binary(max_size=6), st.integers(-3, 40).map(varint), st.just(b"\0\0\0\1\1\0")),
    max_size=30,
).map(b"".join)


@given(near_records | st.binary(max_size=100), st.integers(-1, 10))
def test_any_bytes_decode_alike_in_all_forms_or_are_corrupt_in_all(data: bytes, count: int) -> None:
    try:
        expected = PURE.decode_records(data, count, 5, 6)
    except CorruptRecord:
        expected = None

    for form in FORMS:
        for decode in (form.decode_records, form.decode_columns):
            try:
                found = decode(data, count, 5, 6)
            except CorruptRecord:
                found = None
            rows = rows_of(found, form) if isinstance(found, RecordColumns) else found
            assert rows == expected


SAMPLES = {
    name: segments(name)[0].read_bytes()[:4000]
    for name in (
        "magic0/old-0",
        "magic0/old-gzip-0",
        "magic0/old-lz4-0",
        "magic1/old-snappy-0",
        "magic1/old-lz4-0",
        "magic2/plain-0",
        "magic2/txn-0",
        "magic2/codec-gzip-0",
        "magic2/codec-snappy-0",
        "magic2/codec-lz4-0",
        "magic2/codec-zstd-0",
    )
}


def read_everything(data: bytes) -> None:
    """Call everything that reads a batch; only CorruptRecord may be raised."""
    try:
        for batch in iterate_batches(data):
            for read in (batch.record_tuples, batch.columns):
                try:
                    read(MAX_BYTES)
                except CorruptRecord:
                    continue
            batch.is_crc_valid()
            if batch.magic < 2:
                read_crcs(batch.view)
            else:
                read_header(data, batch.position)
    except CorruptRecord:
        return


@pytest.mark.parametrize("sample", SAMPLES)
@given(data=st.data())
def test_damaged_logs_raise_nothing_but_corrupt_record(sample: str, data: st.DataObject) -> None:
    damaged = bytearray(SAMPLES[sample])
    positions = st.integers(0, 120) | st.integers(0, len(damaged) - 1)
    for position in data.draw(st.lists(positions, min_size=1, max_size=4)):
        damaged[position] ^= data.draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128, 255]))
    cut = data.draw(st.just(len(damaged)) | st.integers(0, len(damaged)))

    read_everything(bytes(damaged[:cut]))


@given(st.sampled_from(Codec), st.binary(max_size=300), st.sampled_from([0, 1, 2]))
def test_any_bytes_decompress_within_bounds_or_are_corrupt(
    codec: Codec, data: bytes, magic: int
) -> None:
    for candidate in (data, compress(codec, b"", magic=magic)[:16] + data):
        try:
            assert len(decompress(codec, candidate, MAX_BYTES, magic)) <= MAX_BYTES
        except CorruptRecord:
            continue
