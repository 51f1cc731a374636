"""Message formats 0 and 1: golden bytes, and special cases of wrappers."""

import pytest

from broker.errors import CorruptRecord
from broker.records.batch import Batch, iterate_batches
from broker.records.compression import compress
from broker.records.layout import Codec, TimestampType
from broker.records.legacy import build_messages, read_columns, read_crcs
from broker.records.record import RecordTuple
from tests.records.golden import READABLE, batches

OLD = [name for name in READABLE if not name.startswith("magic2/")]
RECORDS: list[RecordTuple] = [
    (5, 50, b"k", b"v", ()),
    (6, 70, None, b"", ()),
    (9, 60, b"tombstone", None, ()),
]
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4]


def only(data: bytes) -> Batch:
    (batch,) = iterate_batches(data)
    return batch


def without_timestamps(records: list[RecordTuple]) -> list[RecordTuple]:
    return [(offset, -1, key, value, ()) for offset, _, key, value, _ in records]


@pytest.mark.parametrize("partition", OLD)
def test_golden_messages_are_written_again_as_kafka_wrote_them(partition: str) -> None:
    for batch in batches(partition):
        built = build_messages(
            batch.record_tuples(), batch.magic, batch.codec, batch.header.timestamp_type
        )
        if batch.codec is Codec.NONE:
            assert built == batch.view
        else:  # the compressed bytes depend on the library; what is inside does not
            assert read_crcs(built) == read_crcs(batch.view)
            assert only(built).header._replace(batch_length=0, crc=0) == batch.header._replace(
                batch_length=0, crc=0
            )


@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
def test_format_1_keeps_offsets_timestamps_and_nulls(codec: Codec) -> None:
    data = build_messages(RECORDS, 1, codec)

    records = [record for batch in iterate_batches(data) for record in batch.record_tuples()]

    assert records == RECORDS


@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
def test_format_0_keeps_everything_but_timestamps(codec: Codec) -> None:
    data = build_messages(RECORDS, 0, codec)

    records = [record for batch in iterate_batches(data) for record in batch.record_tuples()]

    assert records == without_timestamps(RECORDS)
    assert {batch.header.timestamp_type for batch in iterate_batches(data)} == {
        TimestampType.NO_TIMESTAMP_TYPE
    }


@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
def test_append_time_rules_over_the_times_inside(codec: Codec) -> None:
    data = build_messages(RECORDS, 1, codec, TimestampType.LOG_APPEND_TIME, append_time=99)

    for batch in iterate_batches(data):
        assert batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME
        assert batch.max_timestamp == 99
        assert {record.timestamp for record in batch.records()} == {99}


def test_a_wrapper_has_the_offset_of_its_last_and_the_time_of_its_latest_message() -> None:
    batch = only(build_messages(RECORDS, 1, Codec.GZIP))

    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (5, 9, 70)


def test_a_wrapper_that_the_broker_moved_moves_its_messages() -> None:
    data = bytearray(build_messages(RECORDS, 1, Codec.LZ4))
    data[0:8] = (109).to_bytes(8, "big")

    assert list(only(bytes(data)).columns().offsets) == [105, 106, 109]


def test_a_wrapper_at_offset_0_leaves_inner_offsets_as_they_are() -> None:
    data = bytearray(build_messages(RECORDS, 1, Codec.LZ4))
    data[0:8] = bytes(8)

    assert list(only(bytes(data)).columns().offsets) == [0, 1, 4]


def test_a_wrapper_below_its_last_relative_offset_is_corrupt() -> None:
    data = bytearray(build_messages(RECORDS, 1, Codec.LZ4))
    data[0:8] = (3).to_bytes(8, "big")

    with pytest.raises(CorruptRecord, match="wrapper offset of at least 4, found 3"):
        only(bytes(data)).records()


def test_inner_crcs_are_checked_on_request() -> None:
    inner = bytearray(build_messages(RECORDS, 0))
    inner[12] ^= 1
    data = wrap(bytes(inner))

    assert len(read_columns(data)) == 3
    with pytest.raises(CorruptRecord, match=r"inner message at 0: expected crc \d+, found \d+"):
        read_columns(data, check_inner_crcs=True)
    assert [stored == computed for stored, computed in read_crcs(data)] == [False, True, True]


def wrap(inner: bytes, codec: int = Codec.NONE) -> bytes:
    """A format 0 wrapper around these bytes, with the codec gzip unless another is given."""
    value = inner if codec else compress(Codec.GZIP, inner)
    data = bytearray(build_messages([(9, -1, None, value, ())], 0))
    data[17] = codec or Codec.GZIP
    return bytes(data)


def test_a_last_inner_message_cut_short_is_left_out_as_kafka_does() -> None:
    data = wrap(build_messages(RECORDS, 0)[:-1])

    assert list(read_columns(data).offsets) == [5, 6]


ONE = build_messages(RECORDS[:1], 0)
DAMAGED = {
    "nothing inside": wrap(b""),
    "an inner size too small": wrap(ONE[:8] + b"\0\0\0\x0d" + ONE[12:]),
    "an inner message of format 2": wrap(ONE[:16] + b"\2" + ONE[17:]),
    "an inner message of format 1 too short": wrap(ONE[:16] + b"\1" + ONE[17:]),
    "a compressed inner message": wrap(ONE[:17] + b"\1" + ONE[18:]),
    "a key longer than its message": wrap(ONE[:18] + b"\0\0\0\x20" + ONE[22:]),
    "a key length of -2": wrap(ONE[:18] + b"\xff\xff\xff\xfe" + ONE[22:]),
    "a key that leaves no room for a value": wrap(ONE[:18] + b"\0\0\0\4" + ONE[22:]),
    "a value longer than its message": wrap(ONE[:23] + b"\0\0\0\2" + ONE[27:]),
    "zstd, which came later": wrap(ONE, codec=4),
    "a codec that does not exist": wrap(ONE, codec=7),
    "no value to unwrap": ONE[:17] + b"\1" + ONE[18:-5] + b"\xff\xff\xff\xff" + ONE[-1:],
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_messages_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecord):
        read_columns(data)


def test_no_records_are_no_bytes() -> None:
    assert build_messages([], 1, Codec.GZIP) == b""
