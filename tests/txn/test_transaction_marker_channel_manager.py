"""Markers are sent to the leaders of partitions, on this broker and on others."""

import asyncio
from collections.abc import Sequence
from typing import Any

from broker.errors import ErrorCode
from broker.metadata_cache import MetadataCache, PartitionMetadata, TopicMetadata
from broker.model import TopicPartition, Uuid
from broker.net.broker_connection import Node
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from broker.txn.storage import TxnMarker
from broker.txn.transaction_marker_channel_manager import TransactionMarkerChannelManager

COMMIT = TxnMarker(5, 1, 3, commit=True)
HERE, OTHER, DEAD = Node(1, "a", 1), Node(2, "b", 2), Node(3, "c", 3)
LED_HERE, LED_THERE, LED_BY_DEAD, LEADERLESS = (TopicPartition("t", p) for p in range(4))
LEADERS = {LED_HERE: HERE, LED_THERE: OTHER, LED_BY_DEAD: DEAD}


class Local:
    def __init__(self) -> None:
        self.written: list[TopicPartition] = []

    async def write_markers(
        self, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        self.written += partitions
        return dict.fromkeys(partitions, ErrorCode.NONE)


class Peers:
    """Broker 2 answers with the same code for every partition; others cannot be reached."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, WriteTxnMarkersRequest]] = []

    async def send(self, node: Node, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        self.sent.append((node.node_id, request))
        if node != OTHER:
            raise ConnectionError("connection refused")
        topics = [
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.markers[0].topics
        ]
        return WriteTxnMarkersResponse(
            markers=[WritableTxnMarkerResult(producer_id=5, topics=topics)]
        )


def channel(local: Any, peers: Any, *topics: str) -> TransactionMarkerChannelManager:
    """A manager whose metadata has these topics with one partition each."""
    metadata = MetadataCache("cluster")
    partition = PartitionMetadata(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
    metadata.put(TopicMetadata(name, Uuid.ZERO, {0: partition}) for name in topics)
    return TransactionMarkerChannelManager(local, metadata, 1, LEADERS.get, peers)


async def test_each_leader_gets_one_request() -> None:
    local, peers = Local(), Peers()
    results = await channel(local, peers).write_markers(
        COMMIT, [LED_THERE, LED_HERE, LED_BY_DEAD, LEADERLESS]
    )
    assert results == {
        LED_HERE: ErrorCode.NONE,
        LED_THERE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        LED_BY_DEAD: ErrorCode.NETWORK_EXCEPTION,
        LEADERLESS: ErrorCode.NETWORK_EXCEPTION,
    }
    assert local.written == [LED_HERE]
    asked, request = peers.sent[0]
    (marker,) = request.markers
    assert asked == 2
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (5, 1, 3)
    assert marker.transaction_result
    assert [(t.name, t.partition_indexes) for t in marker.topics] == [("t", [1])]


def test_partition_counts_as_deleted_only_with_complete_metadata() -> None:
    known = channel(Local(), Peers(), "__transaction_state", "t")
    assert known.has_partition(TopicPartition("t", 0))
    assert not known.has_partition(TopicPartition("t", 1))
    assert not known.has_partition(TopicPartition("t", -1))
    assert not known.has_partition(TopicPartition("gone", 0))
    unknown = channel(Local(), Peers(), "t")
    assert unknown.has_partition(TopicPartition("gone", 0))


async def test_markers_for_the_same_leader_are_batched() -> None:
    class SlowPeers(Peers):
        def __init__(self) -> None:
            super().__init__()
            self.may_answer = asyncio.Event()

        async def send(
            self, node: Node, request: WriteTxnMarkersRequest
        ) -> WriteTxnMarkersResponse:
            await self.may_answer.wait()
            first = await super().send(node, request)
            return WriteTxnMarkersResponse(markers=first.markers * len(request.markers))

    peers = SlowPeers()
    leaders = channel(Local(), peers)
    writing = [
        asyncio.create_task(leaders.write_markers(TxnMarker(n, 0, 3, commit=True), [LED_THERE]))
        for n in range(5)
    ]
    await asyncio.sleep(0)
    peers.may_answer.set()
    results = await asyncio.gather(*writing)
    assert results == [{LED_THERE: ErrorCode.NOT_LEADER_OR_FOLLOWER}] * 5
    sizes = [len(request.markers) for _, request in peers.sent]
    assert sum(sizes) == 5
    assert len(sizes) <= 2, "the first alone, the others together"


async def test_regression_unexpected_error_does_not_block_later_markers() -> None:
    class BreakingPeers(Peers):
        async def send(
            self, node: Node, request: WriteTxnMarkersRequest
        ) -> WriteTxnMarkersResponse:
            if not self.sent:
                self.sent.append((node.node_id, request))
                raise ValueError("99 is not a valid ErrorCode")
            return await super().send(node, request)

    leaders = channel(Local(), BreakingPeers())
    async with asyncio.timeout(5):
        first = await leaders.write_markers(COMMIT, [LED_THERE])
        second = await leaders.write_markers(COMMIT, [LED_THERE])
    assert first == {LED_THERE: ErrorCode.NETWORK_EXCEPTION}
    assert second == {LED_THERE: ErrorCode.NOT_LEADER_OR_FOLLOWER}
