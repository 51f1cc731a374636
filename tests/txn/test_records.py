"""Records compared with a transaction log written by Apache Kafka 3.9 (tests/golden/logs)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptRecord
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.protocol.codec import encode
from broker.protocol.messages.transaction_records import PartitionsSchema, TransactionLogValue
from broker.records.batch import iterate_batches
from broker.records.coordinator_records import build_tombstones
from broker.txn.records import (
    build_transaction_batch,
    read_key,
    read_value,
    transaction_key,
    transaction_value,
)
from broker.txn.states import COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_COMMIT, TransactionState
from broker.txn.transaction import Transaction, TransactionMetadata
from tests.records.golden import batches
from tests.support.batches import assign_offset_and_epoch
from tests.txn.support import stored

GOLDEN = ["magic2/__transaction_state-36", "magic2/__transaction_state-37"]


def step(transaction: Transaction, target: TransactionMetadata) -> None:
    """Repeat the request that made Kafka's coordinator write `target`, at the same time."""
    now_ms = target.txn_last_update_timestamp
    producer = ProducerIdAndEpoch(target.producer_id, target.producer_epoch)
    if target.state == EMPTY:
        transaction.prepare_init_producer_id(target.txn_timeout_ms, None, now_ms)
    elif target.state == ONGOING:
        transaction.prepare_add_partitions(producer, target.partitions, now_ms)
    elif target.state in (COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        transaction.prepare_complete(now_ms)
    else:
        transaction.prepare_end(producer, commit=target.state == PREPARE_COMMIT, now_ms=now_ms)


@pytest.mark.parametrize("partition", GOLDEN)
def test_same_requests_write_the_same_bytes_as_kafka(partition: str) -> None:
    transaction: Transaction | None = None
    count = 0
    for batch in batches(partition):
        ((transactional_id, target),) = stored([batch])
        assert target is not None
        if transaction is None:
            created = TransactionMetadata(target.producer_id, target.txn_timeout_ms, 0)
            transaction = Transaction(transactional_id, created)
        step(transaction, target)
        assert transaction.pending is not None
        ours = bytearray(
            build_transaction_batch(transactional_id, transaction.pending, batch.max_timestamp)
        )
        epoch = batch.header.partition_leader_epoch
        assign_offset_and_epoch(ours, 0, batch.base_offset, epoch)
        assert bytes(ours) == bytes(batch.view)
        transaction.complete_transition()
        count += 1
    assert count == 12


metadata = st.builds(
    TransactionMetadata,
    producer_id=st.integers(0, 2**63 - 1),
    txn_timeout_ms=st.integers(1, 2**31 - 1),
    txn_last_update_timestamp=st.integers(0, 2**62),
    producer_epoch=st.integers(-1, 2**15 - 1),
    state=st.sampled_from([state for state in TransactionState if state != EMPTY]),
    partitions=st.lists(
        st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 9)), unique=True
    ).map(lambda names: tuple(sorted(names))),
    txn_start_timestamp=st.integers(-1, 2**62),
)


@given(st.text(max_size=30), metadata)
def test_value_round_trips(transactional_id: str, known: TransactionMetadata) -> None:
    (batch,) = iterate_batches(build_transaction_batch(transactional_id, known, 1))
    assert stored([batch]) == [(transactional_id, known)]


def test_tombstones_have_no_value() -> None:
    (batch,) = iterate_batches(build_tombstones(map(transaction_key, ["a", "b"]), 1))
    assert stored([batch]) == [("a", None), ("b", None)]


def test_value_of_a_kraft_cluster_is_decoded() -> None:
    value = TransactionLogValue(
        producer_id=7,
        previous_producer_id=6,
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_status=ONGOING,
        transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[2, 0])],
        transaction_last_update_timestamp_ms=20,
        transaction_start_timestamp_ms=10,
        client_transaction_version=2,
    )
    assert read_value(b"\0\1" + encode(value, 1)) == TransactionMetadata(
        producer_id=7,
        producer_epoch=3,
        txn_timeout_ms=60_000,
        txn_last_update_timestamp=20,
        txn_start_timestamp=10,
        state=ONGOING,
        partitions=(TopicPartition("t", 2), TopicPartition("t", 0)),
    )


def test_key_of_a_newer_version_is_unknown() -> None:
    assert read_key(b"\0\1" + transaction_key("a")[2:]) is None


@pytest.mark.parametrize("key", [None, b"", b"\0", b"\0\0\0\5ab"])
def test_damaged_key_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptRecord):
        read_key(key)


@pytest.mark.parametrize(
    "damage",
    [
        lambda value: b"",
        lambda value: value[:-1],
        lambda value: value + b"\0",
        lambda value: b"\0\7" + value[2:],
        lambda value: value[:16] + b"\x63" + value[17:],  # an unknown state
    ],
)
def test_damaged_value_is_corrupt(damage: object) -> None:
    value = transaction_value(TransactionMetadata(1, 1, 1, state=ONGOING, producer_epoch=0))
    assert callable(damage)
    with pytest.raises(CorruptRecord):
        read_value(damage(value))
