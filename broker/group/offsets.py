"""The offsets of one group: committed, pending, and those of ongoing transactions.

A commit is *pending* until its append is acknowledged, then *committed*. A fetch that requires
stable offsets gets UNSTABLE_OFFSET_COMMIT for pending ones. Appends may be acknowledged in another
order than they have in the log. The later one in the log wins, as after loading; therefore each
committed offset keeps the base offset of its batch.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from broker.model import TopicPartition
from broker.records.layout import NO_PARTITION_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """An offset as the client committed it."""

    offset: int
    metadata: str
    commit_timestamp_ms: int
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    expire_timestamp_ms: int | None = None
    """Set if the client chose its own retention (OffsetCommit v2 to v4)."""


@dataclass(frozen=True, slots=True)
class AppendedOffset:
    """An offset in the log, with the base offset of its batch."""

    batch_offset: int
    value: OffsetAndMetadata


Commits = Mapping[TopicPartition, OffsetAndMetadata]


class GroupOffsets:
    """See the module."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, AppendedOffset] = {}
        self._pending: dict[TopicPartition, list[Commits]] = {}
        """Commits in progress by partition, distinguished by identity. Invariant: no empty list."""
        self._transactional: dict[int, dict[TopicPartition, AppendedOffset | None]] = {}
        """By producer id; None until the append is acknowledged. Invariant: no empty mapping."""

    def __bool__(self) -> bool:
        """Whether there is any offset, pending ones included."""
        return bool(self.committed or self._pending or self._transactional)

    def is_pending(self, partition: TopicPartition) -> bool:
        """Whether a commit in progress may still change the offset."""
        return partition in self._pending or any(
            partition in offsets for offsets in self._transactional.values()
        )

    # Plain commits

    def prepare(self, commits: Commits) -> None:
        """Mark as pending; `complete` or `fail` must be called with the same object."""
        for partition in commits:
            self._pending.setdefault(partition, []).append(commits)

    def complete(self, commits: Commits, batch_offset: int) -> None:
        """Commit pending offsets, except of partitions that were deleted meanwhile."""
        for partition, value in commits.items():
            if self._forget_pending(partition, commits):
                self._put(partition, AppendedOffset(batch_offset, value))

    def fail(self, commits: Commits) -> None:
        """Drop pending offsets that were not appended."""
        for partition in commits:
            self._forget_pending(partition, commits)

    def _forget_pending(self, partition: TopicPartition, commits: Commits) -> bool:
        """Drop a pending commit; False if it was not pending any more."""
        pending = self._pending.pop(partition, [])
        others = [other for other in pending if other is not commits]
        if others:
            self._pending[partition] = others
        return len(others) < len(pending)

    def _put(self, partition: TopicPartition, appended: AppendedOffset) -> None:
        current = self.committed.get(partition)
        if current is None or current.batch_offset < appended.batch_offset:
            self.committed[partition] = appended

    # Commits of transactions

    def prepare_transactional(self, producer_id: int, commits: Commits) -> None:
        """Mark as pending in the producer's transaction."""
        offsets = self._transactional.setdefault(producer_id, {})
        for partition in commits:
            offsets.setdefault(partition, None)

    def append_transactional(self, producer_id: int, commits: Commits, batch_offset: int) -> None:
        """Keep appended offsets until the transaction ends."""
        offsets = self._transactional.get(producer_id, {})
        for partition, value in commits.items():
            if partition in offsets:
                offsets[partition] = AppendedOffset(batch_offset, value)

    def fail_transactional(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Drop offsets that were not appended; earlier ones of the transaction stay."""
        offsets = self._transactional.get(producer_id, {})
        for partition in partitions:
            if offsets.get(partition) is None:
                self._forget_transactional(producer_id, partition)

    def _forget_transactional(self, producer_id: int, partition: TopicPartition) -> None:
        offsets = self._transactional.get(producer_id, {})
        offsets.pop(partition, None)
        if not offsets:
            self._transactional.pop(producer_id, None)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Commit or drop the offsets of a transaction that ended."""
        offsets = self._transactional.pop(producer_id, {})
        if not is_commit:
            return
        for partition, appended in offsets.items():
            if appended is not None:
                self._put(partition, appended)

    def has_transaction(self, producer_id: int) -> bool:
        """Whether there are offsets of this producer's transaction."""
        return producer_id in self._transactional

    def open_transactions(self) -> list[int]:
        """The producers with offsets of an ongoing transaction."""
        return list(self._transactional)

    # Loading and removing

    def load(
        self,
        committed: Mapping[TopicPartition, AppendedOffset],
        transactional: Mapping[int, Mapping[TopicPartition, AppendedOffset]],
    ) -> None:
        """Set the offsets that were read from the log."""
        self.committed.update(committed)
        for producer_id, offsets in transactional.items():
            self._transactional[producer_id] = dict(offsets)

    def remove(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Remove offsets, pending ones included; returns those that need tombstones."""
        removed = []
        for partition in partitions:
            self._pending.pop(partition, None)
            for producer_id in list(self._transactional):
                self._forget_transactional(producer_id, partition)
            if self.committed.pop(partition, None) is not None:
                removed.append(partition)
        return removed

    def remove_expired(
        self,
        now_ms: int,
        retention_ms: int,
        base_timestamp_ms: Callable[[OffsetAndMetadata], int],
        kept_topics: Container[str] = (),
    ) -> list[TopicPartition]:
        """Remove and return offsets older than the retention, counted from `base_timestamp_ms`.

        Offsets of `kept_topics` and pending ones are kept. An offset with an expiry timestamp of
        its own expires only by that.
        """
        expired = [
            partition
            for partition, appended in self.committed.items()
            if partition.topic not in kept_topics
            and partition not in self._pending
            and _is_expired(appended.value, now_ms, retention_ms, base_timestamp_ms)
        ]
        for partition in expired:
            del self.committed[partition]
        return expired


def _is_expired(
    value: OffsetAndMetadata,
    now_ms: int,
    retention_ms: int,
    base_timestamp_ms: Callable[[OffsetAndMetadata], int],
) -> bool:
    if value.expire_timestamp_ms is not None:
        return now_ms >= value.expire_timestamp_ms
    return now_ms - base_timestamp_ms(value) >= retention_ms
