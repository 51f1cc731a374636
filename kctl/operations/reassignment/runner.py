"""Runs a reassignment batch by batch, shows its progress, and cleans up after itself.

However a run ends (completion, Ctrl-C, SIGTERM, SIGHUP, a failing cluster), the throttle is
removed last and cannot be interrupted: a throttle that outlives its reassignment slows down
replication of a healthy cluster, and is hard to notice. Two exceptions: with `OnInterrupt.LEAVE`
replicas still move after an interrupt, and the throttle stays with them; and SIGKILL leaves it
behind. `kctl throttle list` shows it as leaked once the reassignment has ended.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.elect_leaders import elect_leaders
from kctl.admin.reassignments import (
    are_known_everywhere,
    begin_reassignments,
    current_replicas,
    list_reassignments,
    replica_sizes,
)
from kctl.admin.topics import find_topics, live_brokers
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.interrupts import TERMINATION, ctrl_c_noted
from kctl.cli.options import Session
from kctl.cli.progress import ShowProgress, progress_display
from kctl.cli.tables import partition_name
from kctl.model.assignments import ReassignmentFile
from kctl.model.elections import Election, ElectionType
from kctl.model.outcomes import Outcome
from kctl.model.reassignments import PartitionChange, Progress, Reassignments, ReplicaSizes
from kctl.operations.reassignment.proposals import Proposal, already_in_progress
from kctl.operations.reassignment.rollback import write_rollback
from kctl.operations.reassignment.throttling import CLEAR_COMMAND, Throttling
from kctl.plans.reassignment.cost import batches_of, changes_of
from kctl.plans.reassignment.progress import ProgressMeter
from kctl.plans.reassignment.stalls import StallDetector
from kctl.views.quantities import plural
from kctl.views.reassignments import RESULT_COLUMNS, progress_text, run_summary, stall_text

MAX_FAILED_POLLS = 5
"""Polls in a row that may fail, as they do while the controller moves to another broker."""

FIRST_PAUSE_S = 0.1
"""Doubled poll by poll up to the interval: small reassignments complete quickly."""

SETTLING_POLLS = 50


class OnInterrupt(StrEnum):
    """What Ctrl-C, SIGTERM and SIGHUP do to the batch in progress."""

    CANCEL = "cancel"
    LEAVE = "leave"


@dataclass(frozen=True)
class RunOptions:
    """Options of a run."""

    rate: int | None = None
    """The throttle in bytes per second."""
    batch_size: int = 20
    interval_s: float = 2.0
    rollback: Path | None = None
    on_interrupt: OnInterrupt = OnInterrupt.CANCEL
    additional: bool = False
    elect: bool = False


def run_reassignment(session: Session, proposal: Proposal, options: RunOptions) -> ExitStatus:
    """Reassign all partitions of the proposal, and show the result of each."""
    changes = changes_of(proposal.layout, proposal.changes)
    if not changes:
        session.out.nothing("nothing to reassign")
        return ExitStatus.OK
    in_progress = ask(session, list_reassignments)
    if in_progress and not options.additional:
        raise already_in_progress(in_progress)
    before = ReassignmentFile({change.partition: change.now for change in changes})
    write_rollback(session, options.rollback, before)
    run = _Run(session, changes, options)
    try:
        with (
            ctrl_c_noted(*TERMINATION) as stop,
            progress_display(note=session.out.note) as show,
        ):
            run.all_batches(show, stop)
    except KeyboardInterrupt:  # the second one
        session.out.note("aborted: kctl reassign list shows what is still in progress")
        return ExitStatus.INTERRUPTED
    if options.elect and not stop.is_set():
        _elect(session, [change.partition for change in changes])
    return _show(session, changes, run, interrupted=stop.is_set())


class _Run:
    """One run.

    Invariant: `_in_progress` are the partitions of the current batch whose reassignment was
    accepted and has not been seen to end.
    """

    def __init__(
        self, session: Session, changes: Sequence[PartitionChange], options: RunOptions
    ) -> None:
        self.refused: dict[str, Outcome] = {}
        """Partitions that the controller refused to reassign, by name."""
        self.throttles_left: list[Outcome] = []
        """Throttles that could not be removed."""
        self._session = session
        self._options = options
        self._batches = batches_of(changes, options.batch_size)
        self._before = {change.partition: change.now for change in changes}
        self._meter = ProgressMeter(changes)
        self._throttling = Throttling(session)
        self._in_progress: set[TopicPartition] = set()
        self._stalls = StallDetector()
        self._started_s = time.monotonic()
        self._was_throttled = False

    def summary(self) -> str:
        """What was moved, in which time, and whether the throttle is gone."""
        taken_s = time.monotonic() - self._started_s
        text = run_summary(self._meter.done_bytes, self._meter.done_partitions, taken_s)
        if self._was_throttled and not self.throttles_left:
            text += "; throttle removed"
        return text

    def all_batches(self, show: ShowProgress, stop: threading.Event) -> None:
        """Run the batches one after the other, until all are done or `stop` is set."""
        try:
            for number, batch in enumerate(self._batches, 1):
                if stop.is_set():
                    break
                self._begin(batch)
                self._wait(f"batch {number}/{len(self._batches)}", show, stop)
                if self._in_progress:  # interrupted
                    self._roll_back()
                self._release()
        finally:
            self._release()

    def _begin(self, batch: Sequence[PartitionChange]) -> None:
        wanted = {change.partition: change.then for change in batch}
        current = {change.partition: change.now for change in batch}
        if self._options.rate is not None and any(change.adding for change in batch):
            others = ask(self._session, list_reassignments)
            rate = self._options.rate
            self._throttling.set(ReassignmentFile(wanted), others, current, rate=rate)
            self._was_throttled = True

        async def begin(client: Client) -> list[Outcome]:
            return await begin_reassignments(client, wanted, timeout_s=self._session.timeout)

        outcomes = ask(self._session, begin, check="kctl reassign list")
        self.refused |= {one.name: one for one in outcomes if one.error}
        self._in_progress = {tp for tp in wanted if str(tp) not in self.refused}

    def _wait(self, batch: str, show: ShowProgress, stop: threading.Event) -> None:
        """Poll until the batch is complete or `stop` is set."""
        failures = 0
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                in_progress, sizes, live = ask(self._session, _poll)
            except CliError:
                failures += 1
                if failures > MAX_FAILED_POLLS:
                    raise
            else:
                failures = 0
                done = self._in_progress - in_progress.keys()
                self._in_progress -= done
                self._meter.finished(done)
                progress = self._meter.sample(time.monotonic(), in_progress, sizes)
                _update(show, batch, progress)
                own = {tp: in_progress[tp] for tp in self._in_progress}
                stall = self._stalls.sample(time.monotonic(), progress, own, sizes, live)
                if stall:
                    self._session.out.note(stall_text(stall))
            if not self._in_progress or stop.wait(min(pause_s, self._options.interval_s)):
                return
            pause_s *= 2

    def _roll_back(self) -> None:
        """After an interrupt: restore the old replicas, or leave the batch running."""
        names = ", ".join(map(str, sorted(self._in_progress)))
        if self._options.on_interrupt is OnInterrupt.LEAVE:
            self._session.out.note(f"still in progress: {names}")
            if self._throttling.keep():
                self._was_throttled = False
                self._session.out.note(
                    "the throttle stays; when kctl reassign list is empty, remove it with:"
                    f" {CLEAR_COMMAND}"
                )
            return
        self._session.out.note(f"interrupted: rolling back {names}")
        # Reassigning to the old replicas, unlike a cancellation, also restores their order.
        before = {tp: self._before[tp] for tp in self._in_progress}

        async def restore(client: Client) -> list[Outcome]:
            return await begin_reassignments(client, before, timeout_s=self._session.timeout)

        ask(self._session, restore, check="kctl reassign list")

    def _release(self) -> None:
        self.throttles_left += self._throttling.release()


def _update(show: ShowProgress, batch: str, progress: Progress) -> None:
    """Show bytes, or partitions if nothing is copied."""
    done, total = progress.done_bytes, progress.all_bytes
    if not total:
        done, total = progress.done_partitions, progress.all_partitions
    show(batch, done, total, line=progress_text(progress))


async def _poll(client: Client) -> tuple[Reassignments, ReplicaSizes, frozenset[int]]:
    """The reassignments in progress, the sizes of their replicas, and the live brokers."""
    in_progress = await list_reassignments(client)
    if not in_progress:
        return in_progress, {}, frozenset()
    topics = await find_topics(client, sorted({partition.topic for partition in in_progress}))
    return in_progress, await replica_sizes(client, topics), await live_brokers(client)


def _elect(session: Session, partitions: Sequence[TopicPartition]) -> None:
    """Elect the preferred leaders now; brokers do it by themselves only after some minutes."""

    async def query(client: Client) -> list[Election]:
        return await elect_leaders(
            client, ElectionType.PREFERRED, partitions, timeout_s=session.timeout
        )

    elections = ask(session, query, check="kctl topics describe")
    elected = [tp for tp, outcome in elections if not outcome.error]
    session.out.note(f"elected {plural(len(elected), 'preferred leader')}")


def _show(
    session: Session, changes: Sequence[PartitionChange], run: _Run, *, interrupted: bool
) -> ExitStatus:
    """Print a row per partition from the cluster's current state; the exit status of the run."""
    rows = ask(session, lambda client: _settled_rows(client, changes, run, interrupted=interrupted))
    session.out.rows(rows, RESULT_COLUMNS, name=partition_name, strict=False)
    session.out.note(run.summary())
    if interrupted:
        return ExitStatus.INTERRUPTED
    if run.refused:
        first = next(iter(run.refused.values()))
        raise CliError(
            f"{len(run.refused)} of {len(changes)} partitions were refused; the first,"
            f" {first.name}: {first.reason}",
            "kctl reassign list shows what is in progress",
        )
    done = all(row["status"] == "moved" for row in rows) and not run.throttles_left
    return ExitStatus.OK if done else ExitStatus.FAILED


async def _settled_rows(
    client: Client, changes: Sequence[PartitionChange], run: _Run, *, interrupted: bool
) -> list[dict[str, object]]:
    """The rows, after all reachable brokers have learned that the reassignments ended."""
    wanted = {change.partition: change.then for change in changes}
    expected = {"moved", "refused"} | ({"as before", "still moving"} if interrupted else set())
    rows: list[dict[str, object]] = []
    for _ in range(SETTLING_POLLS):
        in_progress = await list_reassignments(client)
        current = await current_replicas(client, wanted)
        rows = [_row(c, in_progress, current.get(c.partition, ()), run) for c in changes]
        is_settled = all(row["status"] in expected for row in rows)
        if is_settled and await are_known_everywhere(client, current):
            break
        await asyncio.sleep(FIRST_PAUSE_S)
    return rows


def _row(
    change: PartitionChange, in_progress: Reassignments, replicas: tuple[int, ...], run: _Run
) -> dict[str, object]:
    refused = run.refused.get(str(change.partition))
    return {
        "topic": change.partition.topic,
        "partition": change.partition.partition,
        "replicas": list(replicas),
        "status": _status(change, in_progress, replicas, refused),
        "message": refused.reason if refused else None,
    }


def _status(
    change: PartitionChange,
    in_progress: Reassignments,
    replicas: tuple[int, ...],
    refused: Outcome | None,
) -> str:
    if refused:
        return "refused"
    if change.partition in in_progress:
        return "still moving"
    if replicas == change.then:
        return "moved"
    return "as before" if replicas == change.now else "other replicas"
