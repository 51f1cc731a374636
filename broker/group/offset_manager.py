"""Commits, fetches and forgets offsets: the offsets' half of the coordinator's shell.

An offset counts when its record is in the log of every in-sync replica, not before; while it is on
its way it is pending (see `offsets.py`).
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.group.errors import commit_error
from broker.group.group import Group
from broker.group.member import NO_GENERATION, UNKNOWN_MEMBER_ID
from broker.group.offsets import Commits
from broker.group.records import (
    ProducerState,
    build_offsets_batch,
    build_tombstones,
    group_key,
    offset_key,
)
from broker.group.registry import GroupRegistry
from broker.group.retention import remove_expired_offsets
from broker.group.states import DEAD, EMPTY
from broker.group.storage import VerifyTransaction
from broker.java_strings import java_length
from broker.model import TopicPartition

logger = logging.getLogger(__name__)

INVALID_OFFSET = -1


class Committer(NamedTuple):
    """Who commits: a member of a generation, or nobody in particular."""

    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
    generation_id: int = NO_GENERATION


class FetchedOffset(NamedTuple):
    """A committed offset as it is answered; -1 where there is none."""

    offset: int = INVALID_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


PartitionErrors = dict[TopicPartition, ErrorCode]


class OffsetManager:
    """See the module. Methods raise ApiError where the group as a whole is refused."""

    def __init__(
        self, registry: GroupRegistry, verify_transaction: VerifyTransaction | None = None
    ) -> None:
        self._registry = registry
        self._verify_transaction = verify_transaction
        self._groups_of_producer: defaultdict[int, set[str]] = defaultdict(set)
        """Groups that wait for the end of a producer's transaction."""
        self._commits: set[asyncio.Task[ErrorCode]] = set()
        """On their way into the log."""

    # Committing

    async def commit(
        self, group_id: str, committer: Committer, commits: Commits
    ) -> PartitionErrors:
        """Commit offsets; an unknown group comes into being, if nobody claims to be its member."""
        self._registry.check(group_id, may_be_empty=True)
        if committer.generation_id >= 0 and self._registry.find(group_id) is None:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        group = self._registry.find_or_create(group_id)
        group.check_commit(*committer, is_transactional=False)
        fitting, errors = self._split_by_metadata(commits)
        if not fitting:
            return errors
        group.offsets.prepare(fitting)
        # In a task: what has begun is finished, also when the client hangs up meanwhile.
        code = await self._finish(self._store(group, fitting))
        return errors | dict.fromkeys(fitting, code)

    async def _store(self, group: Group, commits: Commits) -> ErrorCode:
        try:
            batch_offset = await self._append(group, self._build(group.group_id, commits))
        except Exception as error:
            group.offsets.fail(commits)  # whatever it was: nothing stays pending for ever
            if isinstance(error, ApiError):
                return commit_error(error.code)
            raise
        group.offsets.complete(commits, batch_offset)
        return ErrorCode.NONE

    async def commit_transactional(
        self,
        group_id: str,
        transactional_id: str,
        producer: ProducerState,
        committer: Committer,
        commits: Commits,
    ) -> PartitionErrors:
        """Commit offsets that count when the producer's transaction commits."""
        self._registry.check(group_id)
        group = self._registry.find_or_create(group_id)
        await self._verify(group_id, transactional_id, producer)
        group.check_commit(*committer, is_transactional=True)
        fitting, errors = self._split_by_metadata(commits)
        if not fitting:
            return errors
        self._groups_of_producer[producer.producer_id].add(group_id)
        group.offsets.prepare_transactional(producer.producer_id, fitting)
        code = await self._finish(self._store_transactional(group, producer, fitting))
        return errors | dict.fromkeys(fitting, code)

    async def _store_transactional(
        self, group: Group, producer: ProducerState, commits: Commits
    ) -> ErrorCode:
        producer_id = producer.producer_id
        try:
            batch_offset = await self._append(group, self._build(group.group_id, commits, producer))
        except Exception as error:
            group.offsets.fail_transactional(producer_id, commits)
            if not group.offsets.has_transaction(producer_id):
                self._forget_producer(producer_id, group.group_id)
            if isinstance(error, ApiError):
                return commit_error(error.code)
            raise
        group.offsets.append_transactional(producer_id, commits, batch_offset)
        return ErrorCode.NONE

    async def _finish(self, work: Coroutine[Any, Any, ErrorCode]) -> ErrorCode:
        task = asyncio.get_running_loop().create_task(work)
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Commits under way are finished."""
        if self._commits:
            await asyncio.wait(self._commits)

    async def _verify(self, group_id: str, transactional_id: str, producer: ProducerState) -> None:
        if self._verify_transaction is None:
            return
        partition = self._registry.partition_for(group_id)
        try:
            await self._verify_transaction(partition, transactional_id, *producer)
        except ApiError as error:
            raise ApiError(commit_error(error.code), error.message) from error

    def _split_by_metadata(self, commits: Commits) -> tuple[Commits, PartitionErrors]:
        """What may be stored, and the errors of what has too much metadata."""
        limit = self._registry.config.offset_metadata_max_bytes
        too_large = [p for p, value in commits.items() if java_length(value.metadata) > limit]
        fitting = {p: value for p, value in commits.items() if p not in too_large}
        return fitting, dict.fromkeys(too_large, ErrorCode.OFFSET_METADATA_TOO_LARGE)

    def _build(
        self, group_id: str, commits: Commits, producer: ProducerState | None = None
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
        """The marker is in these partitions of the offsets topic."""
        ended = set(partitions)
        for group_id in list(self._groups_of_producer.get(producer_id, ())):
            if self._registry.partition_for(group_id) not in ended:
                continue
            group = self._registry.find(group_id)
            if group is not None:
                group.offsets.end_transaction(producer_id, is_commit)
            self._forget_producer(producer_id, group_id)

    def on_loaded(self, group: Group) -> None:
        """A group came from the log; transactions it waits for must be found at their end."""
        for producer_id in group.offsets.open_transactions():
            self._groups_of_producer[producer_id].add(group.group_id)

    def on_unloaded(self, group: Group) -> None:
        """A group went to another coordinator."""
        for producer_id in group.offsets.open_transactions():
            self._forget_producer(producer_id, group.group_id)

    def _forget_producer(self, producer_id: int, group_id: str) -> None:
        self._groups_of_producer[producer_id].discard(group_id)
        if not self._groups_of_producer[producer_id]:
            del self._groups_of_producer[producer_id]

    # Fetching

    def fetch(
        self, group_id: str, partitions: Sequence[TopicPartition] | None, require_stable: bool
    ) -> dict[TopicPartition, FetchedOffset]:
        """The committed offsets of these partitions; None: of all that have one."""
        self._registry.check(group_id, may_be_empty=True)
        group = self._registry.find(group_id)
        if group is None:
            return dict.fromkeys(partitions or (), FetchedOffset())
        wanted = group.offsets.committed if partitions is None else partitions
        return {partition: _fetch(group, partition, require_stable) for partition in wanted}

    # Forgetting

    async def delete(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionErrors:
        """Forget offsets of a group, except of topics that its members read."""
        self._registry.check(group_id)
        group = self._registry.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not EMPTY and not group.is_consumer_group:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        kept = [
            partition
            for partition in partitions
            if group.state is not EMPTY and group.is_subscribed_to(partition.topic)
        ]
        deleted = [partition for partition in partitions if partition not in kept]
        if deleted:
            await self.clean_up(group, lambda group: group.offsets.remove(deleted))
        errors = dict.fromkeys(kept, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        return errors | dict.fromkeys(deleted, ErrorCode.NONE)

    async def delete_group(self, group_id: str) -> None:
        """Forget a group and its offsets; ApiError if it has members or is not there."""
        self._registry.check(group_id, may_be_empty=True)
        group = self._registry.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not EMPTY:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        self._registry.bury(group)
        await self._write_tombstones(group, group.offsets.remove(list(group.offsets.committed)))

    async def on_partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Topics were deleted: their offsets mean nothing any more."""
        for group in list(self._registry.groups.values()):
            await self.clean_up(group, lambda group: group.offsets.remove(partitions))

    async def expire(self) -> int:
        """Forget offsets, and groups, that are too old; gives the number of offsets."""
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
        """Take offsets out of a group, and the group away if nothing is left of it."""
        if group.state is DEAD:
            return 0  # went away while another group was cleaned up
        removed = remove(group)
        if group.state is EMPTY and not group.offsets:
            self._registry.bury(group)
        await self._write_tombstones(group, removed)
        return len(removed)

    async def _write_tombstones(self, group: Group, partitions: list[TopicPartition]) -> None:
        keys = [offset_key(group.group_id, partition) for partition in partitions]
        is_buried = self._registry.find(group.group_id) is not group
        # A group without a generation was only used to store offsets: it is not in the log.
        if is_buried and group.generation_id > 0:
            keys.append(group_key(group.group_id))
        if not keys:
            return
        now_ms = self._registry.clock.now_ms()
        codec = self._registry.config.offsets_topic_compression_codec
        try:
            await self._append(group, build_tombstones(keys, now_ms, codec))
        except ApiError as error:
            # After a restart they are there again, and expire again.
            logger.warning("tombstones not written group=%s error=%s", group.group_id, error)


def _fetch(group: Group, partition: TopicPartition, require_stable: bool) -> FetchedOffset:
    if require_stable and group.offsets.is_pending(partition):
        return FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    appended = group.offsets.committed.get(partition)
    if appended is None:
        return FetchedOffset()
    value = appended.value
    return FetchedOffset(value.offset, value.leader_epoch, value.metadata)
