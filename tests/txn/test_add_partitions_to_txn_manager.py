"""Verification (KIP-890) and its error codes for clients of all versions."""

import pytest

from broker.errors import ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.txn.add_partitions_to_txn_manager import produce_error, verify
from tests.txn.support import running

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


async def test_partitions_of_the_ongoing_transaction_have_no_error() -> None:
    async with running() as bench:
        producer = await bench.coordinator.init_producer_id("app", 60_000)
        await bench.coordinator.add_partitions("app", producer, [T0])
        ask = (bench.coordinator, "app", producer, [T0, T1])
        assert verify(*ask, knows_abortable=True) == {T1: ErrorCode.TRANSACTION_ABORTABLE}
        assert verify(*ask, knows_abortable=False) == {T1: ErrorCode.INVALID_TXN_STATE}


async def test_error_of_the_coordinator_applies_to_every_partition() -> None:
    async with running() as bench:
        producer = await bench.coordinator.init_producer_id("app", 60_000)
        zombie = ProducerIdAndEpoch(producer.producer_id, producer.producer_epoch - 1)
        fenced = verify(bench.coordinator, "app", zombie, [T0, T1], knows_abortable=True)
        assert fenced == dict.fromkeys([T0, T1], ErrorCode.INVALID_PRODUCER_EPOCH)
        bench.coordinator.on_resignation(bench.coordinator.partition_for("app"))
        elsewhere = verify(bench.coordinator, "app", producer, [T0], knows_abortable=True)
        assert elsewhere == {T0: ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_transient_errors_become_retriable_for_producers(code: ErrorCode, told: ErrorCode) -> None:
    assert produce_error(code).code == told
