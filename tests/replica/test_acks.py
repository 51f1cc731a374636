"""Waiting for partitions: nobody sleeps through a move, nobody is kept after his time."""

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from broker.replica.acks import wait_while
from broker.replica.delayed import Moves
from broker.replica.partition import Partition


@dataclass
class Moving:
    """As much of a partition as a wait looks at."""

    moves: Moves = field(default_factory=Moves)
    offset: int = 0
    num_looks: int = 0

    def move_to(self, offset: int) -> None:
        """The high watermark rises."""
        self.offset = offset
        self.moves.high_watermark_moved()

    @property
    def is_watched(self) -> bool:
        """Whether anybody waits."""
        return bool(self.moves._at_high_watermark)


def wait(*wanted: tuple[Moving, int], timeout_s: float = 10) -> "asyncio.Future[None]":
    """Until they have come so far."""

    def must_wait(partition: Partition, offset: int) -> bool:
        moving = cast(Moving, partition)
        moving.num_looks += 1
        return moving.offset < offset

    return wait_while(must_wait, [(cast(Partition, each), at) for each, at in wanted], timeout_s)


def test_move_wakes_everybody_whose_offset_is_reached() -> None:
    async def scenario() -> list[bool]:
        partition = Moving()
        waits = [wait((partition, offset)) for offset in (1, 2, 2, 3)]
        partition.move_to(2)
        return [each.done() for each in waits]

    assert asyncio.run(scenario()) == [True, True, True, False]


def test_what_is_reached_already_is_not_waited_for() -> None:
    async def scenario() -> tuple[bool, bool]:
        partition = Moving(offset=5)
        return wait((partition, 5)).done(), partition.is_watched

    assert asyncio.run(scenario()) == (True, False)


def test_all_partitions_must_come_and_none_is_asked_again_after_it_has() -> None:
    async def scenario() -> None:
        first, second = Moving(), Moving()
        waiting = wait((first, 1), (second, 1))
        second.move_to(1)
        assert not waiting.done()
        looks = second.num_looks
        first.move_to(1)
        assert waiting.done()
        assert second.num_looks == looks
        await asyncio.sleep(0)
        assert not first.is_watched
        assert not second.is_watched

    asyncio.run(scenario())


def test_time_that_is_up_ends_the_wait() -> None:
    async def scenario() -> bool:
        partition = Moving()
        await wait((partition, 1), timeout_s=0.01)
        return partition.is_watched

    assert not asyncio.run(scenario())


def test_waiter_that_is_cancelled_is_forgotten_by_the_partition() -> None:
    async def scenario() -> None:
        partition = Moving()

        async def waiter() -> None:
            await wait((partition, 1))

        task = asyncio.create_task(waiter())
        await asyncio.sleep(0)
        assert partition.is_watched
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not partition.is_watched

    asyncio.run(scenario())
