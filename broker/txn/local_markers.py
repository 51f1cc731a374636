"""Writes markers into the partitions this broker leads.

The offsets topic is a topic like any other here; but when a marker is in, the group coordinator
must know, because offsets committed in the transaction count from then on. While it reads a
partition, it might miss the marker: so none is written there until it has. It is asked and told
through callbacks; the two coordinators do not know each other.
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
from broker.replica.acks import Appended, wait_for_acks
from broker.replica.manager import ReplicaManager
from broker.topic_names import OFFSETS_TOPIC
from broker.txn.storage import TxnMarker

OffsetsAreLoading = Callable[[int], bool]
"""Whether the group coordinator is reading this partition of the offsets topic."""

OnOffsetsCompleted = Callable[[int, list[int], bool], None]
"""(producer id, partitions of the offsets topic that have the marker, whether it is a commit)."""


class LocalMarkers:
    """The end of a MarkerChannel: writes what this broker is to write."""

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
        """See MarkerChannel; all are appended before the first wait, then one wait for all."""
        results: dict[TopicPartition, ErrorCode] = {}
        appended: dict[TopicPartition, Appended] = {}
        batch = self._build(marker)
        for name in partitions:
            try:
                appended[name] = self._append(name, batch)
            except ApiError as error:
                results[name] = error.code
        await wait_for_acks(appended.values(), self._timeout_s)
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

    def _append(self, name: TopicPartition, batch: bytes) -> Appended:
        if name.topic == OFFSETS_TOPIC and self._offsets_are_loading(name.partition):
            raise NotLeaderOrFollower(f"{name} is being loaded")  # in a word that means: try again
        partition = self._replicas.find(*name)
        info = partition.append_as_leader(batch, origin=AppendOrigin.COORDINATOR)
        return partition, info.last_offset + 1

    def _tell_groups(self, marker: TxnMarker, results: dict[TopicPartition, ErrorCode]) -> None:
        done = [
            name.partition
            for name, code in results.items()
            if name.topic == OFFSETS_TOPIC and code == ErrorCode.NONE
        ]
        if done:
            self._on_offsets_completed(marker.producer_id, done, marker.commit)
