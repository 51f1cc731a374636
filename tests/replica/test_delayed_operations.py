"""DelayedProduce and DelayedDeleteRecords: what completes them, and that nothing is left behind."""

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from broker.errors import ErrorCode
from broker.replica.delayed_operations import DelayedDeleteRecords, DelayedProduce, RequiredOffset
from broker.replica.partition import Partition
from broker.replica.purgatory import Purgatory
from broker.replica.watchers import Watchers
from tests.net.support import in_loop


@dataclass
class FakePartition:
    """The part of a partition that the operations use."""

    watchers: Watchers = field(default_factory=Watchers)
    high_watermark: int = 0
    low_watermark: int = 0
    is_leader: bool = True
    num_checks: int = 0

    def acks_reached(self, offset: int, required_acks: int = -1) -> ErrorCode | None:
        """As `Partition.acks_reached`."""
        self.num_checks += 1
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return None if self.high_watermark < offset else ErrorCode.NONE

    def advance_to(self, offset: int) -> None:
        """Advance the high watermark."""
        self.high_watermark = offset
        self.watchers.check_operations()


def required(*offsets: tuple[FakePartition, int]) -> list[RequiredOffset]:
    return [RequiredOffset(cast(Partition, partition), offset) for partition, offset in offsets]


def produce(*offsets: tuple[FakePartition, int], timeout_s: float = 10) -> DelayedProduce:
    """Wait until the high watermarks have reached these offsets."""
    return DelayedProduce(required(*offsets), timeout_s, Purgatory())


@in_loop
async def test_high_watermark_completes_all_operations_whose_offset_is_reached() -> None:
    partition = FakePartition()
    operations = [produce((partition, offset)) for offset in (1, 2, 2, 3)]
    partition.advance_to(2)
    assert [operation.is_completed for operation in operations] == [True, True, True, False]


@in_loop
async def test_operation_whose_offsets_are_reached_already_is_completed_and_not_watched() -> None:
    partition = FakePartition(high_watermark=5)
    assert produce((partition, 5)).is_completed
    assert not partition.watchers.operations


@in_loop
async def test_all_partitions_must_reach_their_offset_and_none_is_checked_again_after_that() -> (
    None
):
    first, second = FakePartition(), FakePartition()
    operation = produce((first, 1), (second, 1))
    second.advance_to(1)
    was_completed = operation.is_completed
    num_checks = second.num_checks
    first.advance_to(1)
    assert (was_completed, operation.is_completed) == (False, True)
    assert second.num_checks == num_checks
    await asyncio.sleep(0)
    assert not first.watchers.operations
    assert not second.watchers.operations


@in_loop
async def test_leader_that_resigns_completes_its_operations() -> None:
    partition = FakePartition()
    operation = produce((partition, 1))
    partition.is_leader = False
    partition.watchers.check_operations()
    assert operation.is_completed


@in_loop
async def test_timeout_ends_the_wait() -> None:
    partition = FakePartition()
    await produce((partition, 1), timeout_s=0.01)
    assert not partition.watchers.operations


@in_loop
async def test_operation_of_a_cancelled_task_is_watched_no_more() -> None:
    partition = FakePartition()

    async def wait() -> None:
        await produce((partition, 1))

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    assert partition.watchers.operations
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not partition.watchers.operations


@in_loop
async def test_delete_records_waits_for_the_low_watermark_of_a_leader() -> None:
    deleted, resigned = FakePartition(), FakePartition()
    operation = DelayedDeleteRecords(required((deleted, 3), (resigned, 3)), 10, Purgatory())
    deleted.low_watermark = 3
    deleted.watchers.check_operations()
    assert not operation.is_completed
    resigned.is_leader = False
    resigned.watchers.check_operations()
    assert operation.is_completed


@in_loop
async def test_operation_that_the_timer_completes_counts_as_a_missed_wakeup() -> None:
    partition = FakePartition()
    produce((partition, 1))
    assert partition.watchers.heal_operations() == 0
    partition.high_watermark = 1  # without an event
    assert partition.watchers.heal_operations() == 1
    assert partition.watchers.heal_operations() == 0
