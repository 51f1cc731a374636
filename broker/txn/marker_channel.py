"""Markers on their way to the leaders of a transaction's partitions, here and on other brokers."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from broker.errors import ErrorCode
from broker.metadata_cache import MetadataCache
from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.net.peers import Peers
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from broker.topic_names import TRANSACTION_STATE_TOPIC
from broker.txn.local_markers import LocalMarkers
from broker.txn.storage import TxnMarker

Results = Mapping[TopicPartition, ErrorCode]
FindLeader = Callable[[TopicPartition], Node | None]
"""The broker that leads a partition, as other brokers reach it; None if nobody is known to."""

_UNREACHED: Final = ErrorCode.NETWORK_EXCEPTION
"""For partitions whose leader was not asked, or did not answer: to be tried again."""


class LeaderMarkers:
    """See MarkerChannel. One request to each leader at a time; its own partitions directly."""

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
        try:
            response = await self._peers.send(leader, _request(marker, partitions))
        except OSError:
            return dict.fromkeys(partitions, _UNREACHED)
        results = {
            TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.error_code)
            for written in response.markers
            for topic in written.topics
            for partition in topic.partitions
        }
        return {partition: results.get(partition, _UNREACHED) for partition in partitions}


def _request(marker: TxnMarker, partitions: Sequence[TopicPartition]) -> WriteTxnMarkersRequest:
    by_topic = groupby(sorted(partitions), attrgetter("topic"))
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.commit,
                topics=[
                    WritableTxnMarkerTopic(
                        name=topic, partition_indexes=[name.partition for name in names]
                    )
                    for topic, names in by_topic
                ],
                coordinator_epoch=marker.coordinator_epoch,
            )
        ]
    )
