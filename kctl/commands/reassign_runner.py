"""Carrying out a reassignment: batch after batch, watched, and nothing left behind.

Whatever ends a run (its end, Ctrl-C, a polite kill, a cluster that fails), the throttle is taken
back last and without being disturbed: a throttle that outlives its reassignment slows down the
replication of a healthy cluster, and nobody looks for it. Only a `kill -9` can leave one, which
`kctl throttle list` then shows as leaked.
"""

import asyncio
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.elect_leaders import Election, ElectionType, elect_leaders
from kctl.admin.reassignments import (
    Moving,
    begin_reassignments,
    current_replicas,
    list_reassignments,
    replica_sizes,
)
from kctl.admin.topics import find_topics
from kctl.commands.reassign_change import refuse_existing
from kctl.commands.reassign_progress import Watch, progress
from kctl.commands.reassign_throttle import Throttling
from kctl.commands.reassign_words import Proposal, write_rollback
from kctl.errors import CliError, ExitStatus
from kctl.options import Session
from kctl.outcomes import Outcome
from kctl.plans.reassign_cost import Move, batches_of, moves_of
from kctl.plans.reassign_files import ReassignmentFile
from kctl.plans.reassign_progress import Meter, Sizes
from kctl.streaming.interrupts import ctrl_c_noted
from kctl.tables import Column

FAILURES_BORNE = 5
"""How many looks in a row may fail, as they do while the controller changes."""

FIRST_PAUSE_S = 0.1
"""Doubled look by look up to the interval: small moves are over soon."""

SETTLING_LOOKS = 50

RESULT_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("status"),
    Column("message", wide=True),
]


class OnInterrupt(StrEnum):
    """What Ctrl-C does to the moves under way."""

    CANCEL = "cancel"
    LEAVE = "leave"


@dataclass(frozen=True)
class RunOptions:
    """How to carry out a reassignment."""

    rate: int | None = None
    """The throttle, in bytes per second."""
    batch_size: int = 20
    interval_s: float = 2.0
    rollback: Path | None = None
    on_interrupt: OnInterrupt = OnInterrupt.CANCEL
    additional: bool = False
    elect: bool = False


def carry_out(session: Session, proposal: Proposal, options: RunOptions) -> ExitStatus:
    """Move everything the proposal says, and show what became of each partition."""
    moves = moves_of(proposal.layout, proposal.changes)
    if not moves:
        session.out.note("nothing has to move")
        return ExitStatus.OK
    moving = ask(session, list_reassignments)
    if moving and not options.additional:
        raise refuse_existing(moving)
    write_rollback(session, options.rollback, {move.partition: move.now for move in moves})
    run = _Run(session, moves, options)
    try:
        with ctrl_c_noted(signal.SIGTERM) as stop, progress(session) as watch:
            run.all_batches(watch, stop)
    except KeyboardInterrupt:  # the second one
        session.out.note("interrupted at once: kctl reassign list shows what is still moving")
        return ExitStatus.INTERRUPTED
    if options.elect and not stop.is_set():
        _elect(session, [move.partition for move in moves])
    return _show(session, moves, run, interrupted=stop.is_set())


class _Run:
    """One run, and what it could not do: `refused` by partition, and throttles that are left."""

    def __init__(self, session: Session, moves: Sequence[Move], options: RunOptions) -> None:
        self.refused: dict[str, Outcome] = {}
        self.throttles_left: list[Outcome] = []
        self._session = session
        self._options = options
        self._batches = batches_of(moves, options.batch_size)
        self._before = {move.partition: move.now for move in moves}
        self._meter = Meter(moves)
        self._throttling = Throttling(session)
        self._under_way: set[TopicPartition] = set()

    def all_batches(self, watch: Watch, stop: threading.Event) -> None:
        """One after the other, until all are done or `stop` is set."""
        try:
            for number, batch in enumerate(self._batches, 1):
                if stop.is_set():
                    break
                self._begin(batch)
                self._wait(f"batch {number}/{len(self._batches)}", watch, stop)
                if self._under_way:  # interrupted
                    self._go_back()
                self._release()
        finally:
            self._release()

    def _begin(self, batch: Sequence[Move]) -> None:
        wanted = {move.partition: move.then for move in batch}
        current = {move.partition: move.now for move in batch}
        if self._options.rate is not None and any(move.adding for move in batch):
            moving = ask(self._session, list_reassignments)
            rate = self._options.rate
            self._throttling.set(ReassignmentFile(wanted), moving, current, rate=rate)

        async def begin(client: Client) -> list[Outcome]:
            return await begin_reassignments(client, wanted, timeout_s=self._session.timeout)

        outcomes = ask(self._session, begin)
        self.refused |= {one.name: one for one in outcomes if one.error}
        self._under_way = {tp for tp in wanted if str(tp) not in self.refused}

    def _wait(self, batch: str, watch: Watch, stop: threading.Event) -> None:
        failures = 0
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                moving, sizes = ask(self._session, _look)
            except CliError:
                failures += 1
                if failures > FAILURES_BORNE:
                    raise
            else:
                failures = 0
                done = self._under_way - moving.keys()
                self._under_way -= done
                self._meter.finished(done)
                watch(batch, self._meter.look(time.monotonic(), moving, sizes))
            if not self._under_way or stop.wait(min(pause_s, self._options.interval_s)):
                return
            pause_s *= 2

    def _go_back(self) -> None:
        """Cancel what is under way, and see it end; or leave it to itself."""
        names = ", ".join(map(str, sorted(self._under_way)))
        if self._options.on_interrupt is OnInterrupt.LEAVE:
            self._session.out.note(f"still moving, without a throttle from now on: {names}")
            return
        self._session.out.note(f"interrupted: going back with {names}")
        # Naming the replicas that were there, rather than cancelling, keeps their order as well.
        before = {tp: self._before[tp] for tp in self._under_way}

        async def go_back(client: Client) -> list[Outcome]:
            return await begin_reassignments(client, before, timeout_s=self._session.timeout)

        ask(self._session, go_back)

    def _release(self) -> None:
        self.throttles_left += self._throttling.release()


async def _look(client: Client) -> tuple[Moving, Sizes]:
    """What is moving, and how much of it has arrived."""
    moving = await list_reassignments(client)
    if not moving:
        return moving, {}
    topics = await find_topics(client, sorted({partition.topic for partition in moving}))
    return moving, await replica_sizes(client, topics)


def _elect(session: Session, partitions: Sequence[TopicPartition]) -> None:
    """Let the preferred leaders lead at once; the brokers would do so in some minutes anyway."""

    async def question(client: Client) -> list[Election]:
        return await elect_leaders(
            client, ElectionType.PREFERRED, partitions, timeout_s=session.timeout
        )

    elected = [tp for tp, outcome in ask(session, question) if not outcome.error]
    session.out.note(f"{len(elected)} preferred leaders were elected")


def _show(session: Session, moves: Sequence[Move], run: _Run, *, interrupted: bool) -> ExitStatus:
    """A row per partition, from what the cluster says now; the status of the whole."""
    rows = ask(session, lambda client: _settled_rows(client, moves, run, interrupted=interrupted))
    session.out.rows(rows, RESULT_COLUMNS, name="topic")
    if interrupted:
        return ExitStatus.INTERRUPTED
    if run.refused:
        first = next(iter(run.refused.values()))
        raise CliError(
            f"{len(run.refused)} of {len(moves)} partitions were refused; the first,"
            f" {first.name}: {first.reason}"
        )
    done = all(row["status"] == "moved" for row in rows) and not run.throttles_left
    return ExitStatus.OK if done else ExitStatus.FAILED


async def _settled_rows(
    client: Client, moves: Sequence[Move], run: _Run, *, interrupted: bool
) -> list[dict[str, object]]:
    """The rows, once they say what is to be expected: brokers learn of the end a moment later."""
    wanted = {move.partition: move.then for move in moves}
    expected = {"moved", "refused"} | ({"as before", "still moving"} if interrupted else set())
    rows: list[dict[str, object]] = []
    for _ in range(SETTLING_LOOKS):
        moving, current = await list_reassignments(client), await current_replicas(client, wanted)
        rows = [_row(move, moving, current.get(move.partition, ()), run) for move in moves]
        if all(row["status"] in expected for row in rows):
            break
        await asyncio.sleep(FIRST_PAUSE_S)
    return rows


def _row(move: Move, moving: Moving, replicas: tuple[int, ...], run: _Run) -> dict[str, object]:
    refused = run.refused.get(str(move.partition))
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "replicas": list(replicas),
        "status": _status(move, moving, replicas, refused),
        "message": refused.reason if refused else None,
    }


def _status(move: Move, moving: Moving, replicas: tuple[int, ...], refused: Outcome | None) -> str:
    if refused:
        return "refused"
    if move.partition in moving:
        return "still moving"
    if replicas == move.then:
        return "moved"
    return "as before" if replicas == move.now else "other replicas"
