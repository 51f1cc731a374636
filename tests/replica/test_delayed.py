"""Waiting for partitions: nobody sleeps through a move, nobody is kept after his time."""

import asyncio

from broker.replica.delayed import Moves, Ticket


def test_move_wakes_everybody_who_waits_for_it() -> None:
    async def scenario() -> list[bool]:
        moves = Moves()

        async def wait() -> bool:
            with Ticket([moves]) as ticket:
                return await ticket.moved(10)

        waiting = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        moves.wake()
        return await asyncio.gather(*waiting)

    assert asyncio.run(scenario()) == [True, True, True]


def test_move_between_the_ticket_and_the_wait_is_not_lost() -> None:
    async def scenario() -> bool:
        moves = Moves()
        with Ticket([moves]) as ticket:
            moves.wake()
            return await ticket.moved(10)

    assert asyncio.run(scenario())


def test_one_of_several_partitions_is_enough_and_the_others_forget_the_ticket() -> None:
    async def scenario() -> tuple[bool, int]:
        first, second = Moves(), Moves()
        with Ticket([first, second]) as ticket:
            second.wake()
            woken = await ticket.moved(10)
        return woken, len(first._at_high_watermark)

    assert asyncio.run(scenario()) == (True, 0)


def test_time_that_is_up_gives_false() -> None:
    async def scenario() -> bool:
        with Ticket([Moves()]) as ticket:
            return await ticket.moved(0.01)

    assert not asyncio.run(scenario())


def test_waiter_that_is_cancelled_is_cancelled() -> None:
    async def scenario() -> bool:
        moves = Moves()

        async def wait() -> None:
            with Ticket([moves]) as ticket:
                await ticket.moved(10)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled() and not moves._at_high_watermark

    assert asyncio.run(scenario())
