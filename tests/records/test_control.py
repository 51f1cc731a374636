"""Control records: markers as Kafka writes them, and malformed ones."""

import pytest

from broker.errors import CorruptRecord
from broker.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
    control_key,
    control_type,
    read_end_transaction_marker,
)
from tests.records.golden import batches


def test_markers_are_built_as_the_golden_ones() -> None:
    markers = [batch for batch in batches("magic2/txn-0") if batch.is_control]
    assert markers
    for batch in markers:
        header = batch.header
        (record,) = batch.records()
        marker = read_end_transaction_marker(record.key, record.value)
        built = build_end_transaction_batch(
            marker,
            header.producer_id,
            header.producer_epoch,
            record.timestamp,
            record.offset,
            header.partition_leader_epoch,
        )
        assert built == batch.view


@pytest.mark.parametrize("record_type", set(ControlRecordType) - {ControlRecordType.UNKNOWN})
def test_every_type_survives_its_key(record_type: ControlRecordType) -> None:
    assert control_type(control_key(record_type)) is record_type


def test_a_type_from_a_newer_kafka_is_unknown() -> None:
    assert control_type(b"\0\1\0\x63 and more") is ControlRecordType.UNKNOWN


def test_a_newer_marker_version_is_read_as_far_as_it_is_known() -> None:
    key = control_key(ControlRecordType.ABORT)

    marker = read_end_transaction_marker(key, b"\0\1\0\0\0\x07 and more")

    assert marker == EndTransactionMarker(ControlRecordType.ABORT, 7)


COMMIT = control_key(ControlRecordType.COMMIT)
WRONG = {
    "no key": (None, bytes(6), "key: expected at least 4 bytes, found 0"),
    "a short key": (b"\0\0\0", bytes(6), "key: expected at least 4 bytes, found 3"),
    "a negative key version": (b"\xff\xff\0\1", bytes(6), "key: .* found -1"),
    "another type": (b"\0\0\0\2", bytes(6), "found LEADER_CHANGE"),
    "no value": (COMMIT, None, "marker: expected at least 6 bytes, found 0"),
    "a short value": (COMMIT, bytes(5), "marker: expected at least 6 bytes, found 5"),
    "a negative value version": (COMMIT, b"\xff\xff\0\0\0\0", "marker: .* found -1"),
}


@pytest.mark.parametrize(("key", "value", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_marker_is_corrupt(key: bytes | None, value: bytes | None, message: str) -> None:
    with pytest.raises(CorruptRecord, match=message):
        read_end_transaction_marker(key, value)
