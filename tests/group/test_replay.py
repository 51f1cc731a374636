"""Groups loaded from logs written by Kafka and by this broker."""

import logging
from collections.abc import Iterable
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.group.config import GroupConfig
from broker.group.group import Group
from broker.group.offsets import OffsetAndMetadata
from broker.group.records import (
    build_offsets_batch,
    group_key,
    offset_key,
)
from broker.group.replay import Replay
from broker.group.states import EMPTY, STABLE
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.records.batch import Batch, iterate_batches
from broker.records.builder import build_batch
from broker.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)
from broker.records.coordinator_records import build_tombstones
from tests.support.batches import assign_offset_and_epoch

GOLDEN = Path(__file__).parents[1] / "golden" / "logs" / "magic2"
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def replay(batches: Iterable[Batch]) -> dict[str, Group]:
    reader = Replay()
    for batch in batches:
        reader.apply(batch)
    clock = ManualClock()
    groups = reader.groups(lambda group_id: Group(group_id, GroupConfig(), clock))
    return {group.group_id: group for group in groups}


def log(*batches: bytes) -> Iterable[Batch]:
    """A log of these batches, as appended by a leader."""
    offset = 0
    for data in batches:
        stamped = bytearray(data)
        assign_offset_and_epoch(stamped, 0, offset, 0)
        (batch,) = iterate_batches(stamped)
        offset = batch.header.next_offset
        yield batch


def golden(name: str) -> Iterable[Batch]:
    return iterate_batches((GOLDEN / name / "00000000000000000000.log").read_bytes())


def commit(offsets: dict[TopicPartition, int], producer: ProducerIdAndEpoch | None = None) -> bytes:
    values = {name: OffsetAndMetadata(offset, "", 1_000) for name, offset in offsets.items()}
    if producer is None:
        return build_offsets_batch("g", values, 1_000)
    return build_offsets_batch("g", values, 1_000, producer=producer)


def marker(kind: ControlRecordType, producer_id: int = 7) -> bytes:
    return build_end_transaction_batch(EndTransactionMarker(kind, 0), producer_id, 0, 1_000)


def offsets_of(group: Group) -> dict[TopicPartition, int]:
    return {name: appended.value.offset for name, appended in group.offsets.committed.items()}


def test_golden_group_is_empty_in_its_last_generation_with_its_offsets() -> None:
    (group,) = replay(golden("__consumer_offsets-47")).values()
    assert (group.group_id, group.state, group.generation_id) == ("group-a", EMPTY, 2)
    assert group.membership.protocol_type == "consumer"
    assert group.state_timestamp_ms == 1794787906573
    assert offsets_of(group) == {TopicPartition("grp", n): (11, 30, 30)[n] for n in range(3)}
    assert group.offsets.committed[TopicPartition("grp", 0)].value.metadata == "meta-é\0"


def test_golden_group_before_its_member_left_is_stable() -> None:
    first = next(iter(golden("__consumer_offsets-48")))
    (group,) = replay([first]).values()
    (member,) = group.membership
    assert (group.state, group.generation_id, group.protocol_name) == (STABLE, 1, "range")
    assert member.member_id == group.membership.leader
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (45_000, 300_000)
    assert (member.client_id, member.client_host) == ("golden-group-b", "/127.0.0.1")
    assert group.subscribed_topics == frozenset({"grp"})


def test_golden_simple_group_has_only_offsets() -> None:
    (group,) = replay(golden("__consumer_offsets-30")).values()
    assert (group.generation_id, group.membership.protocol_type) == (0, None)
    assert offsets_of(group) == {TopicPartition("grp", 1): 7}


def test_last_commit_wins_and_a_tombstone_removes_it() -> None:
    groups = replay(
        log(
            commit({A: 1, B: 2}),
            commit({A: 3}),
            build_tombstones([offset_key("g", B), group_key("g")], 1_000),
        )
    )
    assert offsets_of(groups["g"]) == {A: 3}


def test_group_without_remaining_records_does_not_exist() -> None:
    assert replay(log(commit({A: 1}), build_tombstones([offset_key("g", A)], 1_000))) == {}


def test_offsets_of_committed_but_not_of_aborted_transactions_are_loaded() -> None:
    producer, other = ProducerIdAndEpoch(7, 0), ProducerIdAndEpoch(8, 0)
    groups = replay(
        log(
            commit({A: 1}, producer),
            commit({A: 9, B: 9}, other),
            marker(ControlRecordType.COMMIT, 7),
            marker(ControlRecordType.ABORT, 8),
        )
    )
    assert offsets_of(groups["g"]) == {A: 1}
    assert not groups["g"].offsets.open_transactions()


def test_offsets_of_an_ongoing_transaction_stay_pending() -> None:
    (group,) = replay(log(commit({A: 1}, ProducerIdAndEpoch(7, 0)))).values()
    assert offsets_of(group) == {}
    assert group.offsets.is_pending(A)
    group.offsets.end_transaction(7, is_commit=True)
    assert offsets_of(group) == {A: 1}


def test_commit_after_a_transactions_one_is_not_overwritten_by_its_marker() -> None:
    groups = replay(
        log(
            commit({A: 1}, ProducerIdAndEpoch(7, 0)),
            commit({A: 2}),
            marker(ControlRecordType.COMMIT),
        )
    )
    assert offsets_of(groups["g"]) == {A: 2}


def test_record_that_cannot_be_decoded_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    broken = build_batch([(0, 1_000, offset_key("g", A), b"\x00\x63nonsense", ())])
    unknown = build_batch([(0, 1_000, b"\x00\x07something new", b"", ())])
    with caplog.at_level(logging.WARNING):
        groups = replay(log(broken, unknown, commit({B: 2})))
    assert offsets_of(groups["g"]) == {B: 2}
    assert sorted(record.levelname for record in caplog.records) == ["ERROR", "WARNING"]
