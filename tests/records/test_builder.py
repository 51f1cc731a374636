"""Built batches equal those of Kafka's builder, byte for byte."""

import pytest

from broker.records.batch import Batch, iterate_batches, read_header
from broker.records.builder import BatchSettings, build_batch, build_empty_batch, varint
from broker.records.decoder import decode_records
from broker.records.layout import Codec, TimestampType
from broker.records.record import RecordTuple
from tests.records.golden import READABLE, batches

CURRENT = [name for name in READABLE if name.startswith("magic2/")]
RECORDS: list[RecordTuple] = [(0, 10, b"k", b"v", ()), (1, 20, b"k", None, (("h", None),))]


@pytest.mark.parametrize("partition", CURRENT)
def test_rebuilt_golden_batches_are_identical(partition: str) -> None:
    for batch in batches(partition):
        # Compressed bytes depend on the library's version, so decompressed records are compared.
        if batch.codec is Codec.NONE:
            assert rebuilt(batch) == batch.view, f"position {batch.position}"
        else:
            (again,) = iterate_batches(rebuilt(batch))
            assert again.records_data() == batch.records_data()


def rebuilt(batch: Batch) -> bytes:
    header = batch.header
    settings = BatchSettings(
        codec=batch.codec,
        timestamp_type=header.timestamp_type,
        append_time=header.max_timestamp,
        partition_leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        delete_horizon_ms=header.delete_horizon_ms,
    )
    first, last = header.base_offset, header.last_offset
    # Not batch.records(), which returns the append time; the bytes have the producer's timestamps.
    data = batch.records_data()
    records = decode_records(data, header.records_count, first, header.base_timestamp)
    return build_batch(records, settings, first, last)


def test_the_codec_compresses_what_the_plain_batch_holds() -> None:
    for codec in Codec:
        (batch,) = iterate_batches(build_batch(RECORDS, BatchSettings(codec=codec)))
        assert batch.codec is codec
        assert batch.is_crc_valid()
        assert batch.record_tuples() == RECORDS


def test_a_batch_may_span_offsets_beyond_its_records() -> None:
    data = build_batch(RECORDS, base_offset=0, last_offset=9)

    header = read_header(data)
    assert (header.base_offset, header.last_offset, header.records_count) == (0, 9, 2)


def test_append_time_is_the_max_timestamp() -> None:
    settings = BatchSettings(timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=99)

    header = read_header(build_batch(RECORDS, settings))

    assert (header.base_timestamp, header.max_timestamp) == (10, 99)


def test_an_empty_batch_keeps_offsets_sequences_and_max_timestamp_only() -> None:
    settings = BatchSettings(
        codec=Codec.GZIP,
        producer_id=3,
        producer_epoch=1,
        base_sequence=7,
        delete_horizon_ms=5,
        partition_leader_epoch=2,
    )

    (batch,) = iterate_batches(build_empty_batch(10, 19, 1234, settings))

    header = batch.header
    assert batch.size_in_bytes == 61
    assert batch.is_crc_valid()
    assert batch.records() == []
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 19, 16)
    assert (header.base_timestamp, header.max_timestamp) == (-1, 1234)
    assert header.attributes == 0


WRONG = {
    "offsets that do not grow": ([RECORDS[0], RECORDS[0]], {}, {}),
    "a record below the base offset": (RECORDS, {}, {"base_offset": 1}),
    "a record above the last offset": (RECORDS, {}, {"last_offset": 0}),
    "more offsets than int32 counts": (RECORDS, {}, {"last_offset": 2**31}),
    "a negative timestamp": ([(0, -2, None, None, ())], {}, {}),
    "a transaction without producer": (RECORDS, {"is_transactional": True}, {}),
    "a producer without epoch": (RECORDS, {"producer_id": 1, "base_sequence": 0}, {}),
    "a producer without sequence": (RECORDS, {"producer_id": 1, "producer_epoch": 0}, {}),
}


@pytest.mark.parametrize(("records", "settings", "offsets"), WRONG.values(), ids=WRONG.keys())
def test_what_kafka_refuses_to_build_is_refused(
    records: list[RecordTuple], settings: dict[str, int], offsets: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        build_batch(records, BatchSettings(**settings), **offsets)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_varints_are_zigzag(value: int, encoded: str) -> None:
    assert varint(value).hex() == encoded
