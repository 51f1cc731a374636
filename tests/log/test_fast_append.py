"""The fast path and the full path of an append do the same, whatever a client sends."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import ApiError
from broker.log.append import CLIENT, LogAppendInfo, analyze
from broker.log.config import LOG_APPEND_TIME, LogConfig
from broker.log.header_check import check_client_header, read_plain_header
from broker.log.partition_log import PartitionLog
from broker.records.batch import BatchHeader
from broker.records.builder import BatchSettings
from broker.records.layout import (
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    MAX_INT32,
    TRANSACTIONAL_MASK,
    Codec,
)
from tests.log.support import COMMIT, NOW_MS, batch, marker, open_log, produced


class WithoutFastPath(PartitionLog):
    """A log whose appends all take the full path."""

    def _append_fast(self, records: object, leader_epoch: int) -> LogAppendInfo | None:
        return None


class Produced(NamedTuple):
    """Two records of an idempotent producer, `step` sequences away from where they belong."""

    producer_id: int
    epoch: int
    step: int
    transactional: bool

    def after(self, log: PartitionLog) -> bytes:
        """The batch to send to this log, in its current state."""
        entry = log.producer_state.producers.get(self.producer_id)
        is_known = entry is not None and entry.producer_epoch == self.epoch
        expected = entry.last_sequence + 1 if entry is not None and is_known else 0
        return produced(
            *("a", "b"),
            sequence=max(expected + self.step, 0) & MAX_INT32,
            producer_id=self.producer_id,
            epoch=self.epoch,
            transactional=self.transactional,
        )


def flipped(data: bytes, position: int) -> bytes:
    """The bytes with one bit flipped."""
    changed = bytearray(data)
    changed[position % len(data)] ^= 1
    return bytes(changed)


def sealed(data: bytes) -> bytes:
    """The batch with the crc that matches its bytes."""
    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


plain = st.builds(
    lambda sizes, timestamp, codec: batch(
        *(b"v" * size for size in sizes),
        timestamp=NOW_MS + timestamp,
        settings=BatchSettings(codec=codec),
    ),
    st.lists(st.integers(0, 60), min_size=1, max_size=4),
    st.integers(-5, 5),
    st.sampled_from(Codec),
)
idempotent = st.builds(
    Produced,
    producer_id=st.sampled_from([7, 8]),
    epoch=st.sampled_from([0, 0, 0, 1]),
    step=st.sampled_from([0, 0, 0, 0, -2, 2, MAX_INT32 - 3]),
    transactional=st.sampled_from([False, False, True]),
)
damaged = st.builds(flipped, plain, st.integers(0, 200))
poisoned = st.builds(
    lambda data, position: sealed(flipped(data, position)), plain, st.integers(21, 200)
)
sent = st.tuples(
    st.one_of(
        plain, idempotent, idempotent, damaged, poisoned, st.just(b""), st.just(marker(COMMIT))
    ),
    st.sampled_from([3, 3, 3, 3, 4]),
)
configs = st.sampled_from(
    [
        LogConfig(segment_bytes=400, max_message_bytes=160, index_interval_bytes=100),
        LogConfig(index_interval_bytes=0),
        LogConfig(message_timestamp_type=LOG_APPEND_TIME),
        LogConfig(cleanup_policy=frozenset({"compact"})),
        LogConfig(compression_type="gzip"),
        LogConfig(message_timestamp_after_max_ms=2),
        LogConfig(flush_messages=3),
    ]
)


def outcome(log: PartitionLog, records: bytes, leader_epoch: int) -> object:
    try:
        return log.append_as_leader(records, leader_epoch, CLIENT)
    except ApiError as error:
        return error.code, error.message


def state_of(log: PartitionLog) -> object:
    state = log.producer_state
    return (
        log.log_end_offset,
        log.producer_state.first_unstable_offset(),
        log.leader_epochs.entries,
        state.map_end_offset,
        [entry.to_snapshot() for entry in log.active_producers],
        [list(entry.batches) for entry in log.active_producers],
    )


@given(configs, st.lists(sent, max_size=12))
@settings(max_examples=300)
def test_both_paths_give_the_same_result_state_and_files(
    config: LogConfig, appends: list[tuple[bytes | Produced, int]]
) -> None:
    with TemporaryDirectory() as directory:
        fast = open_log(Path(directory, "fast-0"), config)
        full = open_log(Path(directory, "full-0"), config)
        full.__class__ = WithoutFastPath
        for what, leader_epoch in appends:
            records = what.after(full) if isinstance(what, Produced) else what
            assert outcome(fast, records, leader_epoch) == outcome(full, records, leader_epoch)
            assert state_of(fast) == state_of(full)
        fast.close()
        full.close()
        assert _files(fast.directory) == _files(full.directory)


@st.composite
def any_header(draw: st.DrawFn) -> bytes:
    """A batch with a right or wrong value in each field that a rule of `header_check` names."""
    body = bytes(draw(st.sampled_from([0, 7])))
    size = HEADER_SIZE + len(body)
    delta = draw(st.sampled_from([0, 0, 2, -1, -(2**31)]))
    header = BatchHeader(
        base_offset=draw(st.sampled_from([0, 0, 0, 5, -1])),
        batch_length=size - 12 + draw(st.sampled_from([0, 0, 0, 1, -1])),
        partition_leader_epoch=-1,
        magic=draw(st.sampled_from([2, 2, 2, 3])),
        crc=0,
        attributes=draw(st.integers(0, 127) | st.sampled_from([0, 4, 5, 16])),
        last_offset_delta=delta,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=draw(st.sampled_from([delta + 1, delta + 1, delta, 0])),
    )
    data = sealed(HEADER.pack(*header) + body)
    return draw(st.sampled_from([data, data, data, flipped(data, 17), data[:-1]]))


def is_accepted_by_the_full_path(data: bytes) -> bool:
    """Whether the full path finds no fault with the header of the one batch in `data`."""
    try:
        (batch,) = analyze(data, MAX_INT32, CLIENT)
        check_client_header(batch.header)
    except (ApiError, ValueError):  # ValueError: not one batch
        return False
    return batch.size_in_bytes == len(data)


@given(any_header())
@settings(max_examples=500)
def test_both_paths_have_the_same_rules_for_headers(data: bytes) -> None:
    header = BatchHeader(*HEADER.unpack_from(data.ljust(HEADER_SIZE, b"x")))
    is_plain = not header.attributes & ~(CODEC_MASK | TRANSACTIONAL_MASK)
    accepted = read_plain_header(memoryview(data)) is not None
    assert accepted == (is_plain and is_accepted_by_the_full_path(data))


def _files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_ordinary_batches_take_the_fast_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "orders-0")
    # The first batch of an epoch or of a producer takes the full path.
    log.append_as_leader(produced("a"), 0)

    def full_path(*_: object) -> None:
        raise AssertionError("took the full path")

    monkeypatch.setattr("broker.log.partition_log.analyze", full_path)
    log.append_as_leader(produced("b", sequence=1), 0)
    log.append_as_leader(batch("c", settings=BatchSettings(codec=Codec.ZSTD)), 0)
    assert log.log_end_offset == 3
