"""Waiting for replicas: until the ISR has what was appended (acks=all), or anything like it."""

import asyncio
from collections.abc import Callable, Iterable

from broker.replica.delayed import Ticket
from broker.replica.partition import Partition

Appended = tuple[Partition, int]
"""A partition, and the high watermark at which what was appended to it is replicated."""


async def wait_for_acks(appended: Iterable[Appended], timeout_s: float) -> None:
    """Return when `acks_reached` has an answer for each of them, or time is up."""
    await wait_while(lambda partition, at: partition.acks_reached(at) is None, appended, timeout_s)


async def wait_while(
    must_wait: Callable[[Partition, int], bool],
    wanted: Iterable[tuple[Partition, int]],
    timeout_s: float,
) -> None:
    """Return when none of them, a partition and an offset each, must wait; or when time is up."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    waiting = list(wanted)
    while waiting := [each for each in waiting if must_wait(*each)]:
        with Ticket(partition.moves for partition, _ in waiting) as ticket:
            if not await ticket.moved(deadline_s - loop.time()):
                return
