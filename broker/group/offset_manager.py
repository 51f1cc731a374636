"""Commits, fetches and deletes offsets: the part of the coordinator's shell for offsets.

An offset is committed when its record is replicated to the ISR; until then it is pending (see
`offsets.py`).
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.group.errors import commit_error
from broker.group.group import Group
from broker.group.member import NO_GENERATION, UNKNOWN_MEMBER_ID
from broker.group.offsets import Commits
from broker.group.records import build_offsets_batch, group_key, offset_key
from broker.group.registry import GroupRegistry
from broker.group.retention import remove_expired_offsets
from broker.group.states import DEAD, EMPTY
from broker.java_strings import java_length
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.records.coordinator_records import build_tombstones
from broker.tasks import TaskSet

logger = logging.getLogger(__name__)

INVALID_OFFSET = -1

VerifyTransaction = Callable[[int, str, int, int], Awaitable[None]]
"""(partition of the offsets topic, transactional id, producer id, producer epoch).

ApiError unless the partition is part of that producer's ongoing transaction (KIP-890).
"""


class Committer(NamedTuple):
    """The client that commits: a member of a generation, or one without group management."""

    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
    generation_id: int = NO_GENERATION


class FetchedOffset(NamedTuple):
    """A committed offset in a response; -1 if nothing was committed."""

    offset: int = INVALID_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


PartitionErrors = dict[TopicPartition, ErrorCode]


class OffsetManager:
    """See the module. Methods raise ApiError if the request is refused for the whole group."""

    def __init__(
        self, registry: GroupRegistry, verify_transaction: VerifyTransaction | None = None
    ) -> None:
        self._registry = registry
        self._verify_transaction = verify_transaction
        self._groups_of_producer: defaultdict[int, set[str]] = defaultdict(set)
        """Groups with offsets of an ongoing transaction, by producer id."""
        self._commits = TaskSet("commit offsets", logs_failures=False)
        """Appends in progress."""

    # Committing

    async def commit(
        self, group_id: str, committer: Committer, commits: Commits
    ) -> PartitionErrors:
        """Commit offsets. An unknown group is created, unless the client claims to be a member."""
        self._registry.check(group_id, may_be_empty=True)
        if committer.generation_id >= 0 and self._registry.find(group_id) is None:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        group = self._registry.find_or_create(group_id)
        group.check_commit(*committer, is_transactional=False)
        fitting, errors = self._split_by_metadata(commits)
        if not fitting:
            return errors
        group.offsets.prepare(fitting)
        # In a task, so that it is finished even if the client disconnects.
        code = await self._finish(self._store(group, fitting))
        return errors | dict.fromkeys(fitting, code)

    async def _store(self, group: Group, commits: Commits) -> ErrorCode:
        try:
            batch_offset = await self._append(group, self._build(group.group_id, commits))
        except Exception as error:
            group.offsets.fail(
                commits
            )  # also for unexpected errors: no offset stays pending for ever
            if isinstance(error, ApiError):
                return commit_error(error.code)
            raise
        group.offsets.complete(commits, batch_offset)
        return ErrorCode.NONE

    async def commit_transactional(
        self,
        group_id: str,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        committer: Committer,
        commits: Commits,
    ) -> PartitionErrors:
        """Append offsets that become committed with the producer's transaction."""
        self._registry.check(group_id)
        await self._verify(group_id, transactional_id, producer)
        self._registry.check(group_id)  # leadership may have moved meanwhile
        group = self._registry.find_or_create(group_id)
        group.check_commit(*committer, is_transactional=True)
        fitting, errors = self._split_by_metadata(commits)
        if not fitting:
            return errors
        self._groups_of_producer[producer.producer_id].add(group_id)
        group.offsets.prepare_transactional(producer.producer_id, fitting)
        code = await self._finish(self._store_transactional(group, producer, fitting))
        return errors | dict.fromkeys(fitting, code)

    async def _store_transactional(
        self, group: Group, producer: ProducerIdAndEpoch, commits: Commits
    ) -> ErrorCode:
        producer_id = producer.producer_id
        try:
            batch_offset = await self._append(group, self._build(group.group_id, commits, producer))
        except Exception as error:
            group.offsets.fail_transactional(producer_id, commits)
            self._maybe_forget_producer(producer_id, group)
            if isinstance(error, ApiError):
                return commit_error(error.code)
            raise
        group.offsets.append_transactional(producer_id, commits, batch_offset)
        return ErrorCode.NONE

    async def _finish(self, work: Coroutine[Any, Any, ErrorCode]) -> ErrorCode:
        return await asyncio.shield(self._commits.spawn(work))

    async def stop(self) -> None:
        """Wait for the appends in progress."""
        await self._commits.wait()

    async def _verify(
        self, group_id: str, transactional_id: str, producer: ProducerIdAndEpoch
    ) -> None:
        if self._verify_transaction is None:
            return
        partition = self._registry.partition_for(group_id)
        try:
            await self._verify_transaction(partition, transactional_id, *producer)
        except ApiError as error:
            raise ApiError(commit_error(error.code), error.message) from error

    def _split_by_metadata(self, commits: Commits) -> tuple[Commits, PartitionErrors]:
        """The offsets that can be stored, and errors for those with too much metadata."""
        limit = self._registry.config.offset_metadata_max_bytes
        too_large = [p for p, value in commits.items() if java_length(value.metadata) > limit]
        fitting = {p: value for p, value in commits.items() if p not in too_large}
        return fitting, dict.fromkeys(too_large, ErrorCode.OFFSET_METADATA_TOO_LARGE)

    def _build(
        self, group_id: str, commits: Commits, producer: ProducerIdAndEpoch | None = None
    ) -> bytes:
        config, now_ms = self._registry.config, self._registry.clock.now_ms()
        codec = config.offsets_topic_compression_codec
        if producer is None:
            return build_offsets_batch(group_id, commits, now_ms, codec)
        return build_offsets_batch(group_id, commits, now_ms, codec, producer)

    async def _append(self, group: Group, batch: bytes) -> int:
        partition = self._registry.partition_for(group.group_id)
        return await self._registry.topic.append(partition, batch)

    # Transactions

    def on_transaction_completed(
        self, producer_id: int, partitions: Iterable[int], is_commit: bool
    ) -> None:
        """Commit or drop the offsets of a transaction whose marker is in these partitions."""
        ended = set(partitions)
        for group_id in list(self._groups_of_producer.get(producer_id, ())):
            if self._registry.partition_for(group_id) not in ended:
                continue
            group = self._registry.find(group_id)
            if group is not None:
                group.offsets.end_transaction(producer_id, is_commit)
            self._forget_producer(producer_id, group_id)

    def on_loaded(self, group: Group) -> None:
        """Register the ongoing transactions of a group that was loaded."""
        for producer_id in group.offsets.open_transactions():
            self._groups_of_producer[producer_id].add(group.group_id)

    def on_unloaded(self, group: Group) -> None:
        """Unregister the ongoing transactions of a group that was unloaded."""
        for producer_id in group.offsets.open_transactions():
            self._forget_producer(producer_id, group.group_id)

    def _maybe_forget_producer(self, producer_id: int, group: Group) -> None:
        """Unregister the producer unless the current group has offsets of its transaction.

        A commit can fail after its partition was unloaded and loaded again. The loaded group may
        have offsets of the same transaction, so the one that failed must not decide.
        """
        current = self._registry.find(group.group_id)
        if current is None or not current.offsets.has_transaction(producer_id):
            self._forget_producer(producer_id, group.group_id)

    def _forget_producer(self, producer_id: int, group_id: str) -> None:
        self._groups_of_producer[producer_id].discard(group_id)
        if not self._groups_of_producer[producer_id]:
            del self._groups_of_producer[producer_id]

    # Fetching

    def fetch(
        self, group_id: str, partitions: Sequence[TopicPartition] | None, require_stable: bool
    ) -> dict[TopicPartition, FetchedOffset]:
        """The committed offsets of these partitions; None: of all partitions that have one."""
        self._registry.check(group_id, may_be_empty=True)
        group = self._registry.find(group_id)
        if group is None:
            return dict.fromkeys(partitions or (), FetchedOffset())
        wanted = group.offsets.committed if partitions is None else partitions
        return {partition: _fetch(group, partition, require_stable) for partition in wanted}

    # Deleting

    async def delete(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionErrors:
        """Delete offsets of a group, except of topics that its members subscribe to."""
        self._registry.check(group_id)
        group = self._registry.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not EMPTY and not group.is_consumer_group:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        kept = {
            partition
            for partition in partitions
            if group.state is not EMPTY and group.is_subscribed_to(partition.topic)
        }
        deleted = [partition for partition in partitions if partition not in kept]
        if deleted:
            await self.clean_up(group, lambda group: group.offsets.remove(deleted))
        errors = dict.fromkeys(kept, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        return errors | dict.fromkeys(deleted, ErrorCode.NONE)

    async def delete_group(self, group_id: str) -> None:
        """Delete a group and its offsets; ApiError if it has members or does not exist."""
        self._registry.check(group_id, may_be_empty=True)
        group = self._registry.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not EMPTY:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        self._registry.mark_dead(group)
        await self._write_tombstones(group, group.offsets.remove(list(group.offsets.committed)))

    async def on_partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Delete the offsets of partitions whose topic was deleted."""
        for group in list(self._registry.groups.values()):
            await self.clean_up(group, lambda group: group.offsets.remove(partitions))

    async def expire(self) -> int:
        """Delete expired offsets, and groups without any; returns the number of offsets."""
        config, now_ms = self._registry.config, self._registry.clock.now_ms()
        removed = 0
        for group in list(self._registry.groups.values()):
            removed += await self.clean_up(
                group, lambda group: remove_expired_offsets(group, config, now_ms)
            )
        if removed:
            logger.info("removed expired offsets count=%s", removed)
        return removed

    async def clean_up(self, group: Group, remove: Callable[[Group], list[TopicPartition]]) -> int:
        """Remove offsets from a group, and the group itself if it is then empty."""
        if group.state is DEAD:
            return 0  # removed or unloaded while another group was cleaned up
        removed = remove(group)
        if group.state is EMPTY and not group.offsets:
            self._registry.mark_dead(group)
        await self._write_tombstones(group, removed)
        return len(removed)

    async def _write_tombstones(self, group: Group, partitions: list[TopicPartition]) -> None:
        keys = [offset_key(group.group_id, partition) for partition in partitions]
        is_removed = self._registry.find(group.group_id) is not group
        # A group without a generation has no record of its own, only offsets.
        if is_removed and group.generation_id > 0:
            keys.append(group_key(group.group_id))
        if not keys:
            return
        now_ms = self._registry.clock.now_ms()
        codec = self._registry.config.offsets_topic_compression_codec
        try:
            await self._append(group, build_tombstones(keys, now_ms, codec))
        except ApiError as error:
            # They reappear when the partition is loaded again, and expire again.
            logger.warning("cannot write tombstones group=%s error=%s", group.group_id, error)


def _fetch(group: Group, partition: TopicPartition, require_stable: bool) -> FetchedOffset:
    if require_stable and group.offsets.is_pending(partition):
        return FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    appended = group.offsets.committed.get(partition)
    if appended is None:
        return FetchedOffset()
    value = appended.value
    return FetchedOffset(value.offset, value.leader_epoch, value.metadata)
