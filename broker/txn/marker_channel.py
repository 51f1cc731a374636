"""Markers on their way to the leaders of a transaction's partitions, here and on other brokers.

Each other leader is sent one request at a time. What is to be sent meanwhile waits, and then goes
together: many transactions that end at once cost few requests.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import MetadataCache
from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.net.peers import Peers
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from broker.topic_names import TRANSACTION_STATE_TOPIC
from broker.txn.local_markers import LocalMarkers
from broker.txn.storage import TxnMarker

logger = logging.getLogger(__name__)

Results = Mapping[TopicPartition, ErrorCode]
FindLeader = Callable[[TopicPartition], Node | None]
"""The broker that leads a partition, as other brokers reach it; None if nobody is known to."""

_UNREACHED: Final = ErrorCode.NETWORK_EXCEPTION
"""For partitions whose leader was not asked, or did not answer: to be tried again."""


class LeaderMarkers:
    """See MarkerChannel. What this broker leads itself it writes without asking anybody."""

    def __init__(
        self,
        local: LocalMarkers,
        metadata: MetadataCache,
        broker_id: int,
        find_leader: FindLeader,
        peers: Peers,
    ) -> None:
        self._local = local
        self._metadata = metadata
        self._broker_id = broker_id
        self._find_leader = find_leader
        self._peers = peers
        self._queues: dict[Node, list[_Waiting]] = {}
        """What waits for each leader."""
        self._sending: set[asyncio.Task[None]] = set()

    def has_partition(self, partition: TopicPartition) -> bool:
        """See MarkerChannel.

        Until the controller has told of the very topic that transactions are kept in, nothing can
        be said of others: they are taken to be there.
        """
        topics = self._metadata.topics
        if TRANSACTION_STATE_TOPIC not in topics:
            return True
        topic = topics.get(partition.topic)
        return topic is not None and 0 <= partition.partition < len(topic.partitions)

    async def write_markers(
        self, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> Results:
        """See MarkerChannel; all leaders at once."""
        by_leader: dict[Node | None, list[TopicPartition]] = {}
        for partition in partitions:
            by_leader.setdefault(self._find_leader(partition), []).append(partition)
        answers = await asyncio.gather(
            *(self._write(leader, marker, led) for leader, led in by_leader.items())
        )
        return {name: code for answer in answers for name, code in answer.items()}

    async def _write(
        self, leader: Node | None, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> Results:
        if leader is None:
            return dict.fromkeys(partitions, _UNREACHED)
        if leader.node_id == self._broker_id:
            return await self._local.write_markers(marker, partitions)
        waiting = _Waiting(marker, partitions, asyncio.get_running_loop().create_future())
        queue = self._queues.setdefault(leader, [])
        queue.append(waiting)
        if len(queue) == 1:
            self._sending.add(task := asyncio.create_task(self._send_all(leader, queue)))
            task.add_done_callback(self._sending.discard)
        return await waiting.results

    async def _send_all(self, leader: Node, queue: "list[_Waiting]") -> None:
        """Send what waits for a leader, until nothing does.

        Whoever is being asked for stays in the queue: a queue that is not empty has its sender.
        """
        while queue:
            batch = list(queue)
            try:
                response = await self._peers.send(leader, _request(batch))
                answers = [_results(written) for written in response.markers]
            except (OSError, ApiError) as error:
                logger.info("markers did not reach broker=%s: %s", leader, error)
                answers = []
            del queue[: len(batch)]
            for number, waiting in enumerate(batch):
                waiting.answer(answers[number] if number < len(answers) else {})
        self._queues.pop(leader, None)


class _Waiting(NamedTuple):
    """A marker that has to reach a leader, and who waits for that."""

    marker: TxnMarker
    partitions: Sequence[TopicPartition]
    results: asyncio.Future[Results]

    def answer(self, codes: Results) -> None:
        """What the leader said; of partitions it did not mention, nothing is known."""
        if not self.results.done():
            self.results.set_result({p: codes.get(p, _UNREACHED) for p in self.partitions})


def _results(written: WritableTxnMarkerResult) -> Results:
    return {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in written.topics
        for partition in topic.partitions
    }


def _request(batch: Iterable[_Waiting]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[_marker(waiting.marker, waiting.partitions) for waiting in batch]
    )


def _marker(marker: TxnMarker, partitions: Sequence[TopicPartition]) -> WritableTxnMarker:
    by_topic = groupby(sorted(partitions), attrgetter("topic"))
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.commit,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=[name.partition for name in names])
            for topic, names in by_topic
        ],
        coordinator_epoch=marker.coordinator_epoch,
    )
