"""Sends markers to the leaders of a transaction's partitions, on this broker and on others.

Each leader gets one WriteTxnMarkers request at a time. Markers that arrive meanwhile are queued and
sent together, so that many transactions that end at the same time need few requests.
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
from broker.tasks import TaskSet
from broker.topic_names import TRANSACTION_STATE_TOPIC
from broker.txn.local_markers import LocalMarkers
from broker.txn.storage import TxnMarker

logger = logging.getLogger(__name__)

Results = Mapping[TopicPartition, ErrorCode]
FindLeader = Callable[[TopicPartition], Node | None]
"""Finds the leader of a partition and its inter-broker address; None if there is no leader."""

_UNREACHED: Final = ErrorCode.NETWORK_EXCEPTION
"""The result for partitions whose leader did not answer; the coordinator retries."""


class TransactionMarkerChannelManager:
    """See MarkerChannel. Markers for partitions that this broker leads are appended locally."""

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
        """Queued markers by leader. Invariant: a queue in this map has a running `_send_all`."""
        self._sending = TaskSet("send transaction markers")

    def has_partition(self, partition: TopicPartition) -> bool:
        """See MarkerChannel.

        While the metadata does not even contain the transaction topic, it is incomplete: partitions
        are then assumed to exist.
        """
        if TRANSACTION_STATE_TOPIC not in self._metadata.topics:
            return True
        return self._metadata.has_partition(*partition)

    async def write_markers(
        self, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> Results:
        """See MarkerChannel. All leaders are sent to concurrently."""
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
            self._sending.spawn(self._send_all(leader, queue))
        return await waiting.results

    async def _send_all(self, leader: Node, queue: "list[_Waiting]") -> None:
        """Send the queued markers of a leader until the queue is empty.

        Markers stay in the queue while their request is in flight, so that a queue that is not
        empty always has a sender.
        """
        try:
            while queue:
                batch = list(queue)
                answers = await self._send(leader, batch)
                del queue[: len(batch)]
                for number, waiting in enumerate(batch):
                    waiting.complete(answers[number] if number < len(answers) else {})
        except Exception:  # a queue without a sender would never be emptied
            logger.exception("failed to send markers broker=%s", leader)
        finally:
            self._queues.pop(leader, None)
            for waiting in queue:
                waiting.complete({})

    async def _send(self, leader: Node, batch: "list[_Waiting]") -> list[Results]:
        """The leader's answers, in the order of `batch`; none if it cannot be reached."""
        try:
            response = await self._peers.send(leader, _request(batch))
        except (OSError, ApiError) as error:
            logger.info("cannot send markers, retrying broker=%s: %s", leader, error)
            return []
        return [_results(written) for written in response.markers]


class _Waiting(NamedTuple):
    """A queued marker and the future of its results."""

    marker: TxnMarker
    partitions: Sequence[TopicPartition]
    results: asyncio.Future[Results]

    def complete(self, codes: Results) -> None:
        """Set the leader's results; partitions it left out count as not reached."""
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
