"""Lines of records built by columns equal those built one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.records.batch import Batch, increment_sequence, iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)
from broker.records.layout import NO_SEQUENCE
from broker.records.record import RecordTuple
from kctl.dump.kafka_text.records import RecordLines, RecordStyle, consecutive_decimals
from kctl.views.text import java_utf_8

some_bytes = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(lambda t: t.encode())
some_headers = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=3), some_bytes), max_size=3
).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """A batch of any shape: gaps or none, sequences or none, nulls, headers, bytes of all kinds."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 8))):
        timestamp = draw(st.sampled_from([-1, 0, 1_700_000_000_000, 2**50]))
        key, value, headers = draw(some_bytes), draw(some_bytes), draw(some_headers)
        records.append((offset, timestamp, key, value, headers))
        offset += draw(st.sampled_from([1, 1, 1, 7]))
    sequence = draw(st.sampled_from([NO_SEQUENCE, 0, 996, 2**31 - 3]))
    producer_id = -1 if sequence == NO_SEQUENCE else 4
    settings = BatchSettings(
        producer_id=producer_id, producer_epoch=min(producer_id, 0), base_sequence=sequence
    )
    return next(iterate_batches(build_batch(records, settings)))


def line(batch: Batch, record: RecordTuple) -> bytes:
    """Kafka's line of one record, built directly."""
    offset, timestamp, key, value, headers = record
    sequence = batch.header.base_sequence
    if sequence != NO_SEQUENCE:
        sequence = increment_sequence(sequence, offset - batch.header.base_offset)
    text = (
        f"| offset: {offset} CreateTime: {timestamp} "
        f"keySize: {-1 if key is None else len(key)} "
        f"valueSize: {-1 if value is None else len(value)} sequence: {sequence} "
        f"headerKeys: [{','.join(name for name, _ in headers)}]"
    ).encode()
    if key is not None:
        text += b" key: " + java_utf_8(key)
    if value is not None:
        text += b" payload: " + java_utf_8(value)
    return text + b"\n"


@given(batches())
def test_lines_by_columns_are_the_lines_one_by_one(batch: Batch) -> None:
    expected = b"".join(line(batch, record) for record in batch.record_tuples())

    assert RecordLines(batch, RecordStyle(contents=True)).text() == expected


@given(st.integers(0, 2**62), st.integers(0, 2500))
def test_decimals_of_consecutive_numbers(first: int, count: int) -> None:
    expected = [str(number).encode() for number in range(first, first + count)]

    assert consecutive_decimals(first, count) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (True, b" endTxnMarker: COMMIT coordinatorEpoch: 5\n"),
        (False, b"\n"),
    ],
)
def test_marker_says_how_the_transaction_ended(metadata: bool, expected: bytes) -> None:
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 5)
    batch = next(iterate_batches(build_end_transaction_batch(marker, 1, 0, 1_700_000_000_000)))

    text = RecordLines(batch, RecordStyle(contents=True, metadata=metadata)).text()

    assert text.partition(b"[]")[2] == expected or text == expected


def test_unknown_control_record_is_named_by_its_number() -> None:
    settings = BatchSettings(is_control=True)
    batch = next(iterate_batches(build_batch([(0, 0, b"\0\0\0\x63", b"", ())], settings)))

    assert RecordLines(batch, RecordStyle()).text().endswith(b" controlType: UNKNOWN(99)\n")
