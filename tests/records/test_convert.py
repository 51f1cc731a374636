"""Conversion down for old consumers and up for old producers; see also test_with_kafka."""

import pytest

from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.records.batch import Batch, iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.compression import compress
from broker.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)
from broker.records.convert import down_convert, needs_down_conversion, up_convert
from broker.records.layout import Codec, TimestampType
from broker.records.legacy import build_messages
from broker.records.record import RecordTuple

RECORDS: list[RecordTuple] = [
    (5, 50, b"k", b"v", (("dropped", b"x"),)),
    (6, 70, None, b"", ()),
    (9, 60, b"t", None, ()),
]
PLAIN_RECORDS = [(*record[:4], ()) for record in RECORDS]
OLD_CODECS = [codec for codec in Codec if codec is not Codec.ZSTD]


def down(data: bytes, magic: int, first_offset: int = 0) -> list[Batch]:
    converted = b"".join(down_convert(iterate_batches(data), magic, first_offset))
    batches = list(iterate_batches(converted))
    assert all(batch.is_crc_valid() for batch in batches)
    return batches


def records_of(batches: list[Batch]) -> list[RecordTuple]:
    return [record for batch in batches for record in batch.record_tuples()]


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_format_1_loses_headers_and_producer_only(codec: Codec) -> None:
    settings = BatchSettings(codec=codec, producer_id=4, producer_epoch=0, base_sequence=0)

    batches = down(build_batch(RECORDS, settings), magic=1)

    assert {(batch.magic, batch.codec) for batch in batches} == {(1, codec)}
    assert records_of(batches) == PLAIN_RECORDS
    assert len(batches) == (3 if codec is Codec.NONE else 1)


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("source", [1, 2])
def test_format_0_loses_timestamps_too(codec: Codec, source: int) -> None:
    data = (
        build_batch(RECORDS, BatchSettings(codec=codec))
        if source == 2
        else build_messages(RECORDS, 1, codec)
    )

    batches = down(data, magic=0)

    assert {(batch.magic, batch.codec) for batch in batches} == {(0, codec)}
    assert records_of(batches) == [(record[0], -1, *record[2:]) for record in PLAIN_RECORDS]


def test_append_time_stays_append_time() -> None:
    settings = BatchSettings(timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=99)

    batches = down(build_batch(RECORDS, settings), magic=1)

    types = {batch.header.timestamp_type for batch in batches}
    assert types == {TimestampType.LOG_APPEND_TIME}
    assert {record[1] for record in records_of(batches)} == {99}


def test_control_batches_are_left_out() -> None:
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 0)
    control = build_end_transaction_batch(marker, producer_id=1, producer_epoch=0, timestamp=1)

    assert down(control, magic=1) == []


def test_batches_that_are_old_enough_pass_as_they_are() -> None:
    data = build_messages(RECORDS, 0) + build_messages(RECORDS, 1, Codec.GZIP)

    assert b"".join(down_convert(iterate_batches(data), 1, 0)) == data
    assert not needs_down_conversion(iterate_batches(data), 1)
    assert needs_down_conversion(iterate_batches(data), 0)


def test_records_below_the_fetched_offset_are_left_out_unless_compressed() -> None:
    plain, packed = build_batch(RECORDS), build_batch(RECORDS, BatchSettings(codec=Codec.GZIP))

    assert [record[0] for record in records_of(down(plain, 1, first_offset=6))] == [6, 9]
    assert [record[0] for record in records_of(down(packed, 1, first_offset=6))] == [5, 6, 9]
    assert down(plain, 1, first_offset=10) == []


def test_zstd_cannot_be_converted_down() -> None:
    with pytest.raises(ApiError, match="zstd batch at offset 5") as raised:
        down(build_batch(RECORDS, BatchSettings(codec=Codec.ZSTD)), magic=1)
    assert raised.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_become_one_renumbered_batch(magic: int, codec: Codec) -> None:
    settings = BatchSettings(codec=Codec.ZSTD, partition_leader_epoch=3)
    old = build_messages(RECORDS, magic, codec)

    (batch,) = iterate_batches(up_convert(iterate_batches(old), 1000, settings))

    assert batch.is_crc_valid()
    assert batch.codec is Codec.ZSTD
    assert batch.header.partition_leader_epoch == 3
    assert [record.offset for record in batch.records()] == [1000, 1001, 1002]
    times = [50, 70, 60] if magic else [-1, -1, -1]
    assert [record.timestamp for record in batch.records()] == times
    assert [record[2:] for record in batch.record_tuples()] == [row[2:] for row in PLAIN_RECORDS]


def up_error(data: bytes) -> ApiError:
    with pytest.raises(ApiError) as raised:
        up_convert(iterate_batches(data), 0, BatchSettings())
    return raised.value


def test_sets_that_kafka_rejects_are_rejected() -> None:
    packed = build_messages(RECORDS, 1, Codec.GZIP)
    mixed = build_messages(RECORDS, 0) + build_messages(RECORDS, 1)
    before_1970 = build_messages([(0, -2, None, None, ())], 1)

    assert up_error(b"").code is ErrorCode.INVALID_RECORD
    assert up_error(mixed).code is ErrorCode.INVALID_RECORD
    assert up_error(packed + packed).code is ErrorCode.INVALID_RECORD
    assert up_error(before_1970).code is ErrorCode.UNKNOWN_SERVER_ERROR  # as in Kafka


def test_a_wrong_crc_outside_or_inside_stops_the_conversion() -> None:
    outside = bytearray(build_messages(RECORDS, 1))
    outside[-1] ^= 1
    damaged = bytearray(build_messages(RECORDS, 1))
    damaged[-1] ^= 1

    assert isinstance(up_error(bytes(outside)), CorruptRecord)
    assert isinstance(up_error(gzip_wrapper(bytes(damaged))), CorruptRecord)


def gzip_wrapper(inner: bytes) -> bytes:
    """A valid wrapper around messages that need not be valid."""
    data = bytearray(build_messages([(2, 1, None, compress(Codec.GZIP, inner), ())], 1))
    data[17] = Codec.GZIP
    (batch,) = iterate_batches(data)
    data[12:16] = batch.computed_crc().to_bytes(4, "big")
    return bytes(data)


def test_the_current_format_needs_no_conversion_up() -> None:
    with pytest.raises(ValueError, match="format 2 needs no conversion"):
        up_convert(iterate_batches(build_batch(RECORDS)), 0, BatchSettings())
