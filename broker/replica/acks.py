"""Waiting until all replicas in the ISR have what was appended: acks=all."""

import asyncio
from collections.abc import Collection

from broker.replica.delayed import Ticket
from broker.replica.partition import Partition

Appended = tuple[Partition, int]
"""A partition, and the high watermark at which what was appended to it is replicated."""


async def wait_for_acks(appended: Collection[Appended], timeout_s: float) -> None:
    """Return when `acks_reached` has an answer for each of them, or time is up."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    waiting = list(appended)
    while waiting := [(p, offset) for p, offset in waiting if p.acks_reached(offset) is None]:
        with Ticket(partition.moves for partition, _ in waiting) as ticket:
            if not await ticket.moved(deadline - loop.time()):
                return
