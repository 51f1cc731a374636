"""Waiting for partitions to move: Kafka's purgatory, as one `await`.

Who waits takes a Ticket on every partition it cares for, looks once more at what it waits for (it
may have happened meanwhile), and awaits the ticket. A partition that moves wakes its tickets and
forgets them; it never polls and is never polled.
"""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Self


class Moves:
    """One partition's side: the tickets to wake when its log end or its watermarks move."""

    __slots__ = ("_tickets",)

    def __init__(self) -> None:
        self._tickets: set[asyncio.Future[None]] = set()

    def add(self, ticket: asyncio.Future[None]) -> None:
        """Wake `ticket` at the next move."""
        self._tickets.add(ticket)

    def discard(self, ticket: asyncio.Future[None]) -> None:
        """Nobody waits for it any more."""
        self._tickets.discard(ticket)

    def wake(self) -> None:
        """It moved."""
        if self._tickets:
            tickets, self._tickets = self._tickets, set()
            for ticket in tickets:
                if not ticket.done():
                    ticket.set_result(None)


class Ticket:
    """The waiter's side: `with Ticket(moves) as ticket: ... await ticket.moved(seconds)`."""

    def __init__(self, moves: Iterable[Moves]) -> None:
        self._moves = list(moves)
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> Self:
        for moves in self._moves:
            moves.add(self._future)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for moves in self._moves:
            moves.discard(self._future)

    async def moved(self, timeout_s: float) -> bool:
        """Whether one of them moved within the time."""
        timer = asyncio.get_running_loop().call_later(max(timeout_s, 0), self._give_up)
        try:
            await self._future
        except asyncio.CancelledError:
            if self._future.cancelled() and not _is_cancelling():
                return False
            raise
        finally:
            timer.cancel()
        return True

    def _give_up(self) -> None:
        self._future.cancel()


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
