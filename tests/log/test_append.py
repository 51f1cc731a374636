"""Batches that a leader refuses, and batches that it rewrites."""

from pathlib import Path

import pytest
from crc32c import crc32c

from broker.clock import ManualClock
from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.log.validator import InvalidRecords
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec, TimestampType
from broker.records.legacy import build_messages
from tests.log.support import (
    COMMIT,
    NOW_MS,
    batch,
    batches_of,
    everything,
    marker,
    offsets_of,
    open_log,
    produced,
    values_of,
)


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_log(tmp_path / "orders-0")


def patched(data: bytes, position: int, replacement: bytes) -> bytes:
    """The batch with these bytes changed, and the crc that matches them."""
    changed = bytearray(data)
    changed[position : position + len(replacement)] = replacement
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (batch("a", offset=3), ErrorCode.INVALID_RECORD),
        (batch("a") + batch("b"), ErrorCode.INVALID_RECORD),
        (patched(batch("a", "b"), 23, (5).to_bytes(4, "big")), ErrorCode.INVALID_RECORD),
        (patched(batch("a"), 23, b"\xff" * 4), ErrorCode.INVALID_RECORD),
        (patched(batch("a"), 57, bytes(4)), ErrorCode.INVALID_RECORD),
        (patched(produced("a"), 53, b"\xff" * 4), ErrorCode.INVALID_RECORD),
        (marker(COMMIT), ErrorCode.INVALID_RECORD),
        (batch("x" * 2_000), ErrorCode.MESSAGE_TOO_LARGE),
        (batch("a")[:-1] + b"\x07", ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=[
        "base offset not 0",
        "two batches",
        "count and offsets differ",
        "negative last offset delta",
        "no records",
        "producer id without sequence",
        "control batch of a client",
        "too large",
        "wrong crc",
    ],
)
def test_bad_batch_is_refused_and_nothing_changes(
    data: bytes, code: ErrorCode, tmp_path: Path
) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(max_message_bytes=1_000))
    with pytest.raises(ApiError) as refused:
        log.append_as_leader(data, 0)
    assert refused.value.code is code
    assert log.log_end_offset == 0
    assert everything(log) == b""


def test_garbage_that_cannot_be_a_batch_is_corrupt(log: PartitionLog) -> None:
    with pytest.raises(CorruptRecord):
        log.append_as_leader(bytes(100), 0)


def test_coordinator_may_write_control_records(log: PartitionLog) -> None:
    info = log.append_as_leader(marker(COMMIT), 0, AppendOrigin.COORDINATOR)
    assert info.first_offset == 0


class TestTimestamps:
    def test_future_timestamp_beyond_the_limit_names_the_records(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(message_timestamp_after_max_ms=1))
        with pytest.raises(InvalidRecords) as refused:
            log.append_as_leader(batch("a", "b", "c", "d", timestamp=NOW_MS), 0)
        assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
        assert [error.batch_index for error in refused.value.record_errors] == [2, 3]
        assert f"Timestamp {NOW_MS + 2} " in refused.value.record_errors[0].message

    def test_old_timestamp_beyond_the_limit_names_the_records(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(message_timestamp_before_max_ms=1))
        with pytest.raises(InvalidRecords) as refused:
            log.append_as_leader(batch("a", "b", "c", timestamp=NOW_MS - 2), 0)
        assert [error.batch_index for error in refused.value.record_errors] == [0]

    def test_timestamps_within_both_limits_are_accepted(self, tmp_path: Path) -> None:
        config = LogConfig(message_timestamp_before_max_ms=5, message_timestamp_after_max_ms=5)
        log = open_log(tmp_path / "orders-0", config)
        assert log.append_as_leader(batch("a", timestamp=NOW_MS - 5), 0).first_offset == 0

    def test_log_append_time_is_stamped_with_a_new_crc(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS + 77)
        config = LogConfig(message_timestamp_type="LogAppendTime")
        log = open_log(tmp_path / "orders-0", config, clock)
        info = log.append_as_leader(batch("a", "b", timestamp=5), 0)
        assert info.log_append_time == info.max_timestamp == NOW_MS + 77
        (stamped,) = batches_of(log)
        assert stamped.is_crc_valid()
        assert {record.timestamp for record in stamped.records()} == {NOW_MS + 77}

    def test_producer_may_not_claim_log_append_time(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(message_timestamp_type="LogAppendTime"))
        settings = BatchSettings(timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=NOW_MS)
        with pytest.raises(InvalidRecords) as refused:
            log.append_as_leader(batch("a", settings=settings), 0)
        assert refused.value.code is ErrorCode.INVALID_TIMESTAMP

    def test_claimed_log_append_time_becomes_create_time(self, log: PartitionLog) -> None:
        settings = BatchSettings(timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=NOW_MS)
        log.append_as_leader(batch("a", settings=settings), 0)
        (stamped,) = batches_of(log)
        assert stamped.header.timestamp_type is TimestampType.CREATE_TIME
        assert stamped.is_crc_valid()


class TestCompactedTopics:
    def test_record_without_key_is_refused(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(cleanup_policy=frozenset({"compact"})))
        with pytest.raises(InvalidRecords) as refused:
            log.append_as_leader(batch("a", "b", "c", "d", "e", keys=[b"k", *[None] * 4]), 0)
        assert refused.value.code is ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in refused.value.record_errors] == [1, 2, 3, 4]
        assert refused.value.message.count("without key") == 3

    def test_marker_needs_no_key_of_the_topic(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(cleanup_policy=frozenset({"compact"})))
        log.append_as_leader(marker(COMMIT), 0, AppendOrigin.COORDINATOR)
        assert log.log_end_offset == 1


class TestCompression:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_producers_codec_is_kept_as_it_came(self, codec: Codec, log: PartitionLog) -> None:
        sent = batch("a", "b", settings=BatchSettings(codec=codec))
        log.append_as_leader(sent, 0)
        assert everything(log)[16:] == sent[16:]

    @pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_topics_codec_rewrites_the_batch(self, name: str, codec: Codec, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(compression_type=name))
        log.append_as_leader(batch("first"), 0)
        sent = produced("a", "b", sequence=0)
        if codec is not Codec.NONE:
            settings = BatchSettings(codec=codec, producer_id=7, producer_epoch=0, base_sequence=0)
            sent = batch("a", "b", settings=settings)
        info = log.append_as_leader(sent, 4)
        *_, written = batches_of(log)
        expected = Codec.NONE if name == "uncompressed" else Codec[name.upper()]
        assert written.codec is expected
        assert (info.first_offset, info.last_offset) == (1, 2)
        assert written.header.producer_id == 7
        assert written.header.partition_leader_epoch == 4
        assert values_of(log) == ["first", "a", "b"]
        assert offsets_of(log) == [0, 1, 2]

    def test_rewritten_batch_that_grew_too_large_is_refused(self, tmp_path: Path) -> None:
        config = LogConfig(compression_type="uncompressed", max_message_bytes=500)
        log = open_log(tmp_path / "orders-0", config)
        with pytest.raises(ApiError) as refused:
            log.append_as_leader(batch("x" * 5_000, settings=BatchSettings(codec=Codec.GZIP)), 0)
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE

    def test_marker_is_never_compressed(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0", LogConfig(compression_type="gzip"))
        log.append_as_leader(marker(COMMIT), 0, AppendOrigin.COORDINATOR)
        assert batches_of(log)[0].codec is Codec.NONE


class TestOldFormats:
    @pytest.mark.parametrize("magic", [0, 1])
    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_old_messages_become_one_batch(
        self, magic: int, codec: Codec, log: PartitionLog
    ) -> None:
        log.append_as_leader(batch("first"), 0)
        rows = [(index, NOW_MS, b"k", value, ()) for index, value in enumerate((b"a", b"b"))]
        info = log.append_as_leader(build_messages(rows, magic, codec), 3)
        assert (info.first_offset, info.last_offset) == (1, 2)
        *_, written = batches_of(log)
        assert written.magic == 2
        assert written.header.partition_leader_epoch == 3
        assert values_of(log) == ["first", "a", "b"]

    def test_follower_keeps_old_messages_and_clears_epochs(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("first"), 0)
        old = build_messages([(1, NOW_MS, b"k", b"old", ())], 1)
        log.append_as_follower(old)
        assert [found.magic for found in batches_of(log)] == [2, 1]
        assert log.leader_epochs.entries == ()

    def test_several_compressed_old_messages_are_refused(self, log: PartitionLog) -> None:
        wrapper = build_messages([(0, NOW_MS, b"k", b"v", ())], 1, Codec.GZIP)
        with pytest.raises(ApiError) as refused:
            log.append_as_leader(wrapper + wrapper, 0)
        assert refused.value.code is ErrorCode.INVALID_RECORD


def test_records_of_a_batch_need_not_begin_at_its_base_timestamp(log: PartitionLog) -> None:
    rows = [(0, NOW_MS, b"k", b"new", ()), (1, NOW_MS - 9, b"k", b"old", ())]
    info = log.append_as_leader(build_batch(rows), 0)
    assert info.max_timestamp == NOW_MS
