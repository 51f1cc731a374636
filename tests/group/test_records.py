"""Records compared with logs of three groups written by Apache Kafka 3.9.1."""

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptRecord
from broker.group.offsets import OffsetAndMetadata
from broker.group.records import (
    GroupKey,
    OffsetKey,
    build_group_batch,
    build_offsets_batch,
    group_key,
    offset_key,
    offset_value,
    read_group_value,
    read_key,
    read_offset_value,
    read_subscribed_topics,
)
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.records.batch import Batch, iterate_batches
from broker.records.coordinator_records import build_tombstones
from broker.records.layout import Codec
from tests.support.batches import assign_offset_and_epoch

GOLDEN = Path(__file__).parents[1] / "golden" / "logs" / "magic2"
LOGS = sorted(GOLDEN.glob("__consumer_offsets-*/*.log"))


def stamped(batch: bytes, like: Batch) -> bytes:
    """The batch with the base offset and leader epoch of the golden one."""
    data = bytearray(batch)
    assign_offset_and_epoch(data, 0, like.header.base_offset, like.header.partition_leader_epoch)
    return bytes(data)


def rebuilt(batch: Batch) -> bytes:
    """Decode a golden batch and encode it again."""
    records = batch.records()
    about = read_key(records[0].key)
    assert about is not None
    if isinstance(about, GroupKey):
        (record,) = records
        assert record.value is not None
        return build_group_batch(about.group_id, read_group_value(record.value), record.timestamp)
    commits = {}
    for record in records:
        key = read_key(record.key)
        assert isinstance(key, OffsetKey)
        assert record.value is not None
        commits[key.partition] = read_offset_value(record.value)
    return build_offsets_batch(about.group_id, commits, records[0].timestamp)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.parent.name)
def test_batches_are_byte_identical_to_kafkas(path: Path) -> None:
    data = path.read_bytes()
    batches = list(iterate_batches(data))
    assert batches
    for batch in batches:
        golden = data[batch.position : batch.end_position]
        assert stamped(rebuilt(batch), batch) == golden


def test_golden_logs_exist() -> None:
    assert len(LOGS) == 3


def test_offset_with_expiry_is_written_in_version_1() -> None:
    value = OffsetAndMetadata(5, "m", 1_000, leader_epoch=-1, expire_timestamp_ms=2_000)
    assert offset_value(value)[:2] == b"\x00\x01"
    assert read_offset_value(offset_value(value)) == value


def test_transactional_batch_has_its_producer() -> None:
    value = OffsetAndMetadata(5, "", 1_000)
    data = build_offsets_batch(
        "g", {TopicPartition("t", 0): value}, 1_000, Codec.NONE, ProducerIdAndEpoch(7, 3)
    )
    header = next(iterate_batches(data)).header
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 0)


def test_tombstones_have_no_values() -> None:
    keys = [offset_key("g", TopicPartition("t", 1)), group_key("g")]
    (batch,) = iterate_batches(build_tombstones(keys, 1_000))
    assert [(record.key, record.value) for record in batch.records()] == [
        (keys[0], None),
        (keys[1], None),
    ]
    assert batch.header.base_sequence == -1


def test_batch_is_compressed_with_the_codec() -> None:
    value = OffsetAndMetadata(5, "m" * 1000, 1_000)
    data = build_offsets_batch("g", {TopicPartition("t", 0): value}, 1_000, Codec.ZSTD)
    (batch,) = iterate_batches(data)
    assert batch.codec is Codec.ZSTD
    assert len(data) < 300


def test_key_of_a_newer_version_is_unknown() -> None:
    assert read_key(b"\x00\x03\x00\x01g") is None


@pytest.mark.parametrize("key", [None, b"", b"\x00", b"\x00\x01\x00\x05gr"])
def test_damaged_key_raises_corrupt_record(key: bytes | None) -> None:
    with pytest.raises(CorruptRecord):
        read_key(key)


def test_subscription_of_a_newer_version_is_decoded_as_version_0() -> None:
    newer = b"\x00\x63\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff and more"
    assert read_subscribed_topics("g", [newer]) == frozenset({"t"})


def test_topics_are_unknown_if_a_subscription_cannot_be_decoded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert read_subscribed_topics("g", [b"\x00"]) is None
    assert "cannot decode a subscription group=g" in caplog.text


@given(
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.integers(0, 2**31 - 1),
)
def test_offset_keys_round_trip(group_id: str, topic: str, partition: int) -> None:
    name = TopicPartition(topic, partition)
    assert read_key(offset_key(group_id, name)) == OffsetKey(group_id, name)


@given(
    st.builds(
        OffsetAndMetadata,
        st.integers(-(2**63), 2**63 - 1),
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.integers(0, 2**63 - 1),
        st.integers(-1, 2**31 - 1),
    )
)
def test_offset_values_round_trip(value: OffsetAndMetadata) -> None:
    assert read_offset_value(offset_value(value)) == value
