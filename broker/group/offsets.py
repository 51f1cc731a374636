"""The offsets of one group: committed, being committed, and waiting for a transaction's end.

A commit is first *pending* (a fetch that asks for stable offsets is told to come back), then
appended to the log, then *committed*. Appends may be acknowledged in another order than they
have in the log; the later one in the log counts, as it will after the log is read again. That is
why each committed offset remembers the base offset of its batch.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from broker.model import TopicPartition

NO_LEADER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """One committed offset, as the client said it."""

    offset: int
    metadata: str
    commit_timestamp_ms: int
    leader_epoch: int = NO_LEADER_EPOCH
    expire_timestamp_ms: int | None = None
    """Set by clients that chose their own retention (OffsetCommit v2 to v4)."""


@dataclass(frozen=True, slots=True)
class AppendedOffset:
    """An offset that is in the log."""

    batch_offset: int
    value: OffsetAndMetadata


Commits = Mapping[TopicPartition, OffsetAndMetadata]


class GroupOffsets:
    """See the module."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, AppendedOffset] = {}
        self._pending: dict[TopicPartition, list[Commits]] = {}
        """The commits under way of each partition, told apart by identity. Invariant: no empty
        list."""
        self._transactional: dict[int, dict[TopicPartition, AppendedOffset | None]] = {}
        """By producer id; None until the commit is appended. Invariant: no empty mapping."""

    def __bool__(self) -> bool:
        """Whether anything is here that the group must be kept for."""
        return bool(self.committed or self._pending or self._transactional)

    def is_pending(self, partition: TopicPartition) -> bool:
        """Whether a commit is under way, so that the offset may change without another request."""
        return partition in self._pending or any(
            partition in offsets for offsets in self._transactional.values()
        )

    # Plain commits

    def prepare(self, commits: Commits) -> None:
        """These are about to be appended; `complete` or `fail` must be given the same object."""
        for partition in commits:
            self._pending.setdefault(partition, []).append(commits)

    def complete(self, commits: Commits, batch_offset: int) -> None:
        """They were appended. Partitions deleted meanwhile are no longer pending, and stay away."""
        for partition, value in commits.items():
            if self._forget_pending(partition, commits):
                self._put(partition, AppendedOffset(batch_offset, value))

    def fail(self, commits: Commits) -> None:
        """They were not appended."""
        for partition in commits:
            self._forget_pending(partition, commits)

    def _forget_pending(self, partition: TopicPartition, commits: Commits) -> bool:
        """Whether it was pending still."""
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
        """These are about to be appended as part of the producer's transaction."""
        offsets = self._transactional.setdefault(producer_id, {})
        for partition in commits:
            offsets.setdefault(partition, None)

    def append_transactional(self, producer_id: int, commits: Commits, batch_offset: int) -> None:
        """They were appended; they count when the transaction commits."""
        offsets = self._transactional.get(producer_id, {})
        for partition, value in commits.items():
            if partition in offsets:
                offsets[partition] = AppendedOffset(batch_offset, value)

    def fail_transactional(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """They were not appended; what the transaction committed before still waits for its end."""
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
        """The marker is in the log: what the transaction committed counts now, or never."""
        offsets = self._transactional.pop(producer_id, {})
        if not is_commit:
            return
        for partition, appended in offsets.items():
            if appended is not None:
                self._put(partition, appended)

    def has_transaction(self, producer_id: int) -> bool:
        """Whether this producer's transaction has offsets here."""
        return producer_id in self._transactional

    def open_transactions(self) -> list[int]:
        """The producers whose transactions have offsets here."""
        return list(self._transactional)

    # Loading and forgetting

    def load(
        self,
        committed: Mapping[TopicPartition, AppendedOffset],
        transactional: Mapping[int, Mapping[TopicPartition, AppendedOffset]],
    ) -> None:
        """What the log held."""
        self.committed.update(committed)
        for producer_id, offsets in transactional.items():
            self._transactional[producer_id] = dict(offsets)

    def remove(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Forget these, pending ones too; gives those that were committed: they need tombstones."""
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
        """Forget what is older than the retention, counted from `base_timestamp_ms`.

        Kept are `kept_topics` and what is being committed again. An offset with an expiry of its
        own goes by that alone.
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
