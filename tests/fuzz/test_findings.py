"""What the fuzzer has found: each request gets an error, changes nothing and logs no traceback."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from broker.protocol.schema import Request, ResponseT
from tests.simulation.clients import committed_offsets
from tests.support.broker import RunningBroker, running_broker

ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    directory: Path = tmp_path_factory.mktemp("broker")
    with running_broker(directory) as running:
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        send(running, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        yield running


def send(broker: RunningBroker, request: Request[ResponseT]) -> ResponseT:
    async def ask() -> ResponseT:
        async with Client(broker.bootstrap_servers) as client:
            return await client.send(request)

    response = asyncio.run(ask())
    assert "Traceback" not in broker.output()
    return response


def test_user_whose_name_no_znode_can_have_is_an_invalid_request(broker: RunningBroker) -> None:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name="..")])
    (result,) = send(broker, request).results
    assert result.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(-1, 0), (5, -1)])
def test_marker_without_producer_is_refused(
    broker: RunningBroker, producer_id: int, producer_epoch: int
) -> None:
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
        coordinator_epoch=0,
    )
    (result,) = send(broker, WriteTxnMarkersRequest(markers=[marker])).markers
    assert result.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_refused_transactional_commit_leaves_no_pending_offsets(broker: RunningBroker) -> None:
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=7, committed_metadata=None
    )
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=-1,
        producer_epoch=-1,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )

    async def commit_and_read() -> tuple[int, object]:
        async with Client(broker.bootstrap_servers) as client:
            response = await client.send_to_coordinator("g", request)
            found = await committed_offsets(client, "g", [ORDERS])
            return response.topics[0].partitions[0].error_code, found

    code, found = asyncio.run(commit_and_read())
    assert code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert found == {ORDERS: -1}
    assert "Traceback" not in broker.output()
