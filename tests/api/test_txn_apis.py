"""Requests of the transaction APIs that the script of tests/txn/test_wire.py does not send."""

import itertools
import time
from collections.abc import Iterator

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_transactions import ListTransactionsRequest
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.broker import RunningBroker
from tests.support.wire import WireClient

TRANSACTION = 1
numbers = itertools.count()


@pytest.fixture
def wire(shared_broker: RunningBroker) -> Iterator[WireClient]:
    """A connection to a broker that has a topic `t` and coordinates transactions."""
    with WireClient(shared_broker.bootstrap_servers) as wire:
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        wire.ask(CreateTopicsRequest(topics=[topic]), 5)
        request = FindCoordinatorRequest(key="any", key_type=TRANSACTION)
        deadline = time.monotonic() + 20
        while wire.ask(request, 2).error_code:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield wire


def new_transaction(
    wire: WireClient, *partitions: int, epochs_ahead: int = 0
) -> AddPartitionsToTxnTransaction:
    """A new transactional id, with partitions of `t` to add."""
    transactional_id = f"api-{next(numbers)}"
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    given = wire.ask(request, 4)
    assert given.error_code == 0
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=given.producer_id,
        producer_epoch=given.producer_epoch + epochs_ahead,
        topics=[AddPartitionsToTxnTopic(name="t", partitions=list(partitions))],
    )


def test_several_transactions_in_one_request_are_answered_each_for_itself(wire: WireClient) -> None:
    first, second = new_transaction(wire, 0, 1), new_transaction(wire, 1, epochs_ahead=1)
    answer = wire.ask(AddPartitionsToTxnRequest(transactions=[first, second]), 4)
    results = {
        result.transactional_id: [
            partition.partition_error_code
            for topic in result.topic_results
            for partition in topic.results_by_partition
        ]
        for result in answer.results_by_transaction
    }
    assert results == {
        first.transactional_id: [0, 0],
        second.transactional_id: [ErrorCode.PRODUCER_FENCED],
    }


def test_no_transactions_are_answered_with_none(wire: WireClient) -> None:
    assert wire.ask(AddPartitionsToTxnRequest(transactions=[]), 5).results_by_transaction == []


def test_list_filters_by_producer_id_and_by_duration(wire: WireClient) -> None:
    transaction = new_transaction(wire, 0)
    wire.ask(AddPartitionsToTxnRequest(transactions=[transaction]), 4)
    ids = [transaction.producer_id]
    by_id = ListTransactionsRequest(producer_id_filters=ids)
    (found,) = wire.ask(by_id, 0).transaction_states
    assert found.transactional_id == transaction.transactional_id
    by_both = ListTransactionsRequest(producer_id_filters=ids, duration_filter=3_600_000)
    assert wire.ask(by_both, 1).transaction_states == []


def test_markers_of_several_producers_are_answered_in_their_order(wire: WireClient) -> None:
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=0,
                transaction_result=True,
                coordinator_epoch=0,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
            )
            for producer_id, topic in [(10**6, "t"), (10**6 + 1, "nowhere")]
        ]
    )
    answer = wire.ask(request, 0)
    assert [
        (result.producer_id, result.topics[0].partitions[0].error_code) for result in answer.markers
    ] == [(10**6, ErrorCode.NONE), (10**6 + 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert wire.ask(WriteTxnMarkersRequest(), 1).markers == []
