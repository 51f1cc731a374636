"""Markers find the leaders of partitions, here and elsewhere."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from broker.txn.marker_channel import LeaderMarkers
from broker.txn.storage import TxnMarker

COMMIT = TxnMarker(5, 1, 3, commit=True)
HERE, OTHER, DEAD = Node(1, "a", 1), Node(2, "b", 2), Node(3, "c", 3)
LED_HERE, LED_THERE, LED_BY_DEAD, LED_BY_NOBODY = (TopicPartition("t", p) for p in range(4))
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
    """Broker 2 answers, every partition with the same code; others do not."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, WriteTxnMarkersRequest]] = []

    async def send(self, node: Node, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        self.sent.append((node.node_id, request))
        if node != OTHER:
            raise ConnectionError("nobody there")
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


def channel(local: Any, peers: Any, topics: dict[str, Any] | None = None) -> LeaderMarkers:
    metadata: Any = SimpleNamespace(topics=topics or {})
    return LeaderMarkers(local, metadata, 1, LEADERS.get, peers)


async def test_each_leader_is_asked_once_and_its_answer_counts() -> None:
    local, peers = Local(), Peers()
    results = await channel(local, peers).write_markers(
        COMMIT, [LED_THERE, LED_HERE, LED_BY_DEAD, LED_BY_NOBODY]
    )
    assert results == {
        LED_HERE: ErrorCode.NONE,
        LED_THERE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        LED_BY_DEAD: ErrorCode.NETWORK_EXCEPTION,
        LED_BY_NOBODY: ErrorCode.NETWORK_EXCEPTION,
    }
    assert local.written == [LED_HERE]
    asked, request = peers.sent[0]
    (marker,) = request.markers
    assert asked == 2
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (5, 1, 3)
    assert marker.transaction_result
    assert [(t.name, t.partition_indexes) for t in marker.topics] == [("t", [1])]


def test_partition_counts_as_deleted_only_when_the_metadata_is_known() -> None:
    told = {"__transaction_state": None, "t": SimpleNamespace(partitions=[None])}
    known = channel(Local(), Peers(), told)
    assert known.has_partition(TopicPartition("t", 0))
    assert not known.has_partition(TopicPartition("t", 1))
    assert not known.has_partition(TopicPartition("t", -1))
    assert not known.has_partition(TopicPartition("gone", 0))
    untold = channel(Local(), Peers(), {"t": SimpleNamespace(partitions=[None])})
    assert untold.has_partition(TopicPartition("gone", 0))


async def test_markers_that_wait_for_the_same_leader_go_together() -> None:
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
