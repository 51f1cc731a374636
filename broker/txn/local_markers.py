"""Appends markers to the partitions that this broker leads.

The offsets topic is treated like any other, with two additions. When a marker is replicated, the
group coordinator is notified, because the offsets of the transaction become visible with it. While
the group coordinator loads a partition it could miss a marker, so none is appended there until it
has finished. Both go through callbacks; the two coordinators do not import each other.
"""

from collections.abc import Callable, Sequence

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode, NotLeaderOrFollower
from broker.log.append import AppendOrigin
from broker.model import TopicPartition
from broker.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)
from broker.replica.delayed_operations import DelayedProduce, RequiredOffset
from broker.replica.manager import ReplicaManager
from broker.topic_names import OFFSETS_TOPIC
from broker.txn.storage import TxnMarker

OffsetsAreLoading = Callable[[int], bool]
"""Whether the group coordinator is loading this partition of the offsets topic."""

OnOffsetsCompleted = Callable[[int, list[int], bool], None]
"""(producer id, partitions of the offsets topic with the marker, whether it is a commit)."""


class LocalMarkers:
    """Appends markers as leader."""

    def __init__(
        self,
        replicas: ReplicaManager,
        clock: Clock,
        timeout_ms: int,
        offsets_are_loading: OffsetsAreLoading,
        on_offsets_completed: OnOffsetsCompleted,
    ) -> None:
        self._replicas = replicas
        self._clock = clock
        self._timeout_s = timeout_ms / 1000
        self._offsets_are_loading = offsets_are_loading
        self._on_offsets_completed = on_offsets_completed

    async def write_markers(
        self, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """See MarkerChannel. Appends to all partitions first, then waits once for all acks."""
        results: dict[TopicPartition, ErrorCode] = {}
        appended: dict[TopicPartition, RequiredOffset] = {}
        batch = self._build(marker)
        for name in partitions:
            try:
                appended[name] = self._append(name, batch)
            except ApiError as error:
                results[name] = error.code
        await DelayedProduce(appended.values(), self._timeout_s, self._replicas.purgatory)
        for name, (partition, offset, _) in appended.items():
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

    def _append(self, name: TopicPartition, batch: bytes) -> RequiredOffset:
        if name.topic == OFFSETS_TOPIC and self._offsets_are_loading(name.partition):
            raise NotLeaderOrFollower(f"{name} is being loaded")  # the coordinator retries this one
        partition = self._replicas.find(*name)
        info = partition.append_as_leader(batch, origin=AppendOrigin.COORDINATOR)
        return RequiredOffset(partition, info.last_offset + 1)

    def _tell_groups(self, marker: TxnMarker, results: dict[TopicPartition, ErrorCode]) -> None:
        done = [
            name.partition
            for name, code in results.items()
            if name.topic == OFFSETS_TOPIC and code == ErrorCode.NONE
        ]
        if done:
            self._on_offsets_completed(marker.producer_id, done, marker.commit)
