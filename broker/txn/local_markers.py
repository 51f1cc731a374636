"""Writes markers into the partitions this broker leads.

The offsets topic is a partition like any other here; but when its marker is in, the group
coordinator must know, because offsets committed in the transaction count from then on. It is told
through a callback: the two coordinators do not know each other.
"""

import asyncio
from collections.abc import Callable, Sequence

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.log.append import AppendOrigin
from broker.metadata_cache import MetadataCache
from broker.model import TopicPartition
from broker.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)
from broker.replica.delayed import Ticket
from broker.replica.manager import ReplicaManager
from broker.replica.partition import Partition
from broker.topic_names import OFFSETS_TOPIC
from broker.txn.storage import TxnMarker

OnOffsetsCompleted = Callable[[int, list[int], bool], None]
"""(producer id, partitions of the offsets topic that have the marker, whether it is a commit)."""

_Appended = dict[TopicPartition, tuple[Partition, int]]
"""Partitions that took the marker, and the high watermark at which it is replicated."""


class LocalMarkers:
    """See MarkerChannel: the whole of it on one broker, its end on each of several."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        clock: Clock,
        timeout_ms: int,
        on_offsets_completed: OnOffsetsCompleted,
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._timeout_s = timeout_ms / 1000
        self._on_offsets_completed = on_offsets_completed

    def has_partition(self, partition: TopicPartition) -> bool:
        """See MarkerChannel."""
        topic = self._metadata.topics.get(partition.topic)
        return topic is not None and 0 <= partition.partition < len(topic.partitions)

    async def write_markers(
        self, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """See MarkerChannel; all are appended before the first wait, then one wait for all."""
        results: dict[TopicPartition, ErrorCode] = {}
        appended: _Appended = {}
        batch = self._build(marker)
        for name in partitions:
            try:
                appended[name] = self._append(name, batch)
            except ApiError as error:
                results[name] = error.code
        await self._acknowledged(appended)
        for name, (partition, offset) in appended.items():
            code = partition.acks_reached(offset)
            results[name] = ErrorCode.REQUEST_TIMED_OUT if code is None else code
        self._tell_groups(marker, results)
        return results

    def _build(self, marker: TxnMarker) -> bytes:
        end = ControlRecordType.COMMIT if marker.commit else ControlRecordType.ABORT
        return build_end_transaction_batch(
            EndTransactionMarker(end, marker.coordinator_epoch),
            marker.producer_id,
            marker.producer_epoch,
            self._clock.now_ms(),
        )

    def _append(self, name: TopicPartition, batch: bytes) -> tuple[Partition, int]:
        partition = self._replicas.find(*name)
        info = partition.append_as_leader(batch, origin=AppendOrigin.COORDINATOR)
        return partition, info.last_offset + 1

    async def _acknowledged(self, appended: _Appended) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_s
        waiting = list(appended.values())
        while waiting := [(p, offset) for p, offset in waiting if p.acks_reached(offset) is None]:
            with Ticket(partition.moves for partition, _ in waiting) as ticket:
                if not await ticket.moved(deadline - loop.time()):
                    return

    def _tell_groups(self, marker: TxnMarker, results: dict[TopicPartition, ErrorCode]) -> None:
        done = [
            name.partition
            for name, code in results.items()
            if name.topic == OFFSETS_TOPIC and code == ErrorCode.NONE
        ]
        if done:
            self._on_offsets_completed(marker.producer_id, done, marker.commit)
