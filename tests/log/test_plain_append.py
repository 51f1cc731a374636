"""The short way of an append and the long one: whatever a client sends, both do the same."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import ApiError
from broker.log.append import CLIENT, LogAppendInfo
from broker.log.config import LOG_APPEND_TIME, LogConfig
from broker.log.partition_log import PartitionLog
from broker.records.builder import BatchSettings
from broker.records.layout import MAX_INT32, Codec
from tests.log.support import COMMIT, NOW_MS, batch, marker, open_log, produced


class OnlyTheLongWay(PartitionLog):
    """A log that thinks every batch over."""

    def _append_plain(self, records: object, leader_epoch: int) -> LogAppendInfo | None:
        return None


class Produced(NamedTuple):
    """Two records of an idempotent producer, `step` sequences away from where they belong."""

    producer_id: int
    epoch: int
    step: int
    transactional: bool

    def after(self, log: PartitionLog) -> bytes:
        """The batch, as it is sent when the log stands so."""
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
    """With one bit another."""
    changed = bytearray(data)
    changed[position % len(data)] ^= 1
    return bytes(changed)


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
sent = st.tuples(
    st.one_of(plain, idempotent, idempotent, damaged, st.just(b""), st.just(marker(COMMIT))),
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


def what_is_known(log: PartitionLog) -> object:
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
def test_both_ways_answer_note_and_write_the_same(
    config: LogConfig, appends: list[tuple[bytes | Produced, int]]
) -> None:
    with TemporaryDirectory() as directory:
        short = open_log(Path(directory, "short-0"), config)
        long = open_log(Path(directory, "long-0"), config)
        long.__class__ = OnlyTheLongWay
        for what, leader_epoch in appends:
            records = what.after(long) if isinstance(what, Produced) else what
            assert outcome(short, records, leader_epoch) == outcome(long, records, leader_epoch)
            assert what_is_known(short) == what_is_known(long)
        short.close()
        long.close()
        assert _files(short.directory) == _files(long.directory)


def _files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_ordinary_batches_do_take_the_short_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "orders-0")
    log.append_as_leader(produced("a"), 0)  # the first of an epoch and of a producer is unknown

    def thought_over(*_: object) -> None:
        raise AssertionError("the long way")

    monkeypatch.setattr("broker.log.partition_log.analyze", thought_over)
    log.append_as_leader(produced("b", sequence=1), 0)
    log.append_as_leader(batch("c", settings=BatchSettings(codec=Codec.ZSTD)), 0)
    assert log.log_end_offset == 3
