"""`kctl reassign execute` and `cancel`: begin what a plan says, and go back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.reassignments import (
    Moving,
    begin_reassignments,
    cancel_reassignments,
    list_reassignments,
)
from kctl.admin.replica_log_dirs import move_replicas
from kctl.commands.reassign_throttle import Throttling, clear_as_kafka_does, clear_leaked
from kctl.commands.reassign_words import (
    Additional,
    KafkaPlanFile,
    MissingPartition,
    PlanFile,
    PreserveThrottles,
    Proposal,
    Rollback,
    Throttle,
    parse_plan,
    proposal_of_file,
    write_rollback,
)
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.kafka_text.reassign import (
    EXISTING,
    NO_MOVES_ACTIVE,
    cancelled_line,
    error_line,
    failed_lines,
    log_dir_lines,
    missing_words,
    rollback_lines,
    started_line,
    throttle_lines,
)
from kctl.options import KafkaText, Session, session_of
from kctl.outcomes import Outcome, show_outcomes
from kctl.plans.reassign_cost import MOVE_COLUMNS, moves_of, summary, total_row
from kctl.plans.reassign_draft import Assignment
from kctl.plans.reassign_files import ReassignmentFile, ReplicaPlace
from kctl.plans.reassign_log_dirs import log_dir_moves
from kctl.tables import Column
from kctl.words.amounts import parse_rate
from kctl.words.partitions import PartitionChoice, parse_partition_words, usage_error

CANCEL_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("adding"),
    Column("removing"),
]
LogDirsThrottle = Annotated[
    str | None,
    typer.Option(
        "--log-dirs-throttle",
        "--replica-alter-log-dirs-throttle",
        metavar="RATE",
        help="Bytes a second for moves between directories.",
    ),
]


def execute(
    ctx: typer.Context,
    file: PlanFile = None,
    throttle: Throttle = None,
    log_dirs_throttle: LogDirsThrottle = None,
    additional: Additional = False,
    rollback: Rollback = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    kafka_file: KafkaPlanFile = None,
) -> ExitStatus | None:
    """Begin what a plan file says, and return at once; `reassign run` stays until it is done.

    A throttle that is set here stays until it is cleared: by `reassign verify --clear-throttles`
    or `kctl throttle clear`.
    """
    session = session_of(ctx)
    rate = parse_rate(throttle, "--throttle") if throttle else None
    dirs_rate = parse_rate(log_dirs_throttle, "--log-dirs-throttle") if log_dirs_throttle else None
    as_kafka = bool(text_format)
    try:
        wanted = parse_plan(file, kafka_file)
        moving = ask(session, list_reassignments)
        if moving and not additional:
            return _refuse_existing(session, moving, as_kafka=as_kafka)
        proposal = proposal_of_file(session, wanted.replicas)
    except CliError as error:
        if not as_kafka or error.status is ExitStatus.USAGE:
            raise
        is_missing = isinstance(error, MissingPartition)
        words = missing_words(error.message) if is_missing else error.message
        session.out.lines([error_line(words)])
        return ExitStatus.FAILED
    if not agreed(session, move_plan(session, proposal), yes=yes, dry_run=dry_run):
        return None
    current = {tp: proposal.layout.replicas[tp] for tp in wanted.replicas}
    if as_kafka:
        session.out.lines(rollback_lines(current))
    write_rollback(session, rollback, current)
    throttling = Throttling(session)
    throttling.set(wanted, moving, current, rate=rate, log_dirs_rate=dirs_rate)
    if as_kafka:
        session.out.lines(throttle_lines(rate, dirs_rate))
    return _begin(session, wanted, throttling, as_kafka=as_kafka)


def move_plan(session: Session, proposal: Proposal) -> Plan:
    """What the user gets to see before replicas move."""
    total = total_row(proposal.layout, proposal.changes, proposal.allowed)
    session.out.note(summary(total))
    rows = [move.row() for move in moves_of(proposal.layout, proposal.changes)]
    count = len(proposal.changes)
    question = f"Reassign {count} partition{'s' * (count != 1)}?"
    return Plan(question, rows, MOVE_COLUMNS, "topic")


def refuse_existing(moving: Moving) -> CliError:
    """The refusal of a cluster that is moving something already."""
    return CliError(
        f"{len(moving)} partitions are being reassigned already: nothing was changed",
        "kctl reassign list shows them; --additional goes on all the same",
    )


def _refuse_existing(session: Session, moving: Moving, *, as_kafka: bool) -> ExitStatus:
    if not as_kafka:
        raise refuse_existing(moving)
    session.out.lines([EXISTING])
    return ExitStatus.FAILED


def _begin(
    session: Session, wanted: ReassignmentFile, throttling: Throttling, *, as_kafka: bool
) -> ExitStatus | None:
    async def begin(client: Client) -> list[Outcome]:
        return await begin_reassignments(client, wanted.replicas, timeout_s=session.timeout)

    outcomes = ask(session, begin)
    if all(one.error for one in outcomes):
        throttling.release()
    if as_kafka and any(one.error for one in outcomes):
        session.out.lines(failed_lines(outcomes))
        return ExitStatus.FAILED
    if as_kafka:
        session.out.lines([started_line(wanted.replicas)])
    started = _move_log_dirs(session, wanted)
    if as_kafka:
        session.out.lines(log_dir_lines(started))
    else:
        show_outcomes(session.out, outcomes, "partition", "started")
    return None


def _move_log_dirs(session: Session, wanted: ReassignmentFile) -> dict[ReplicaPlace, str]:
    if not wanted.log_dirs:
        return {}

    async def move(client: Client) -> dict[ReplicaPlace, str]:
        # Before the whole question times out, so that what has begun can still be told.
        return await move_replicas(client, wanted.log_dirs, timeout_s=session.timeout * 0.8)

    started = ask(session, move)
    if late := [place for place in wanted.log_dirs if place not in started]:
        names = ",".join(f"{partition}-{broker}" for partition, broker in sorted(late))
        raise CliError(
            f"Timed out before log directory move{'s' * (len(late) != 1)} could be started"
            f" for: {names}",
            "run it again with --additional when the replicas have arrived",
            ExitStatus.TIMED_OUT,
        )
    return started


def cancel(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC[:PARTITION,…]…",
            help="Topics, or some of their partitions.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "--reassignment-json-file",
            metavar="FILE",
            help="The partitions of Kafka's JSON plan.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are under way.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    preserve_throttles: PreserveThrottles = False,
) -> ExitStatus | None:
    """Cancel reassignments: partitions go back to the replicas they had.

    Throttles that nothing needs any more are taken away with them.
    """
    session = session_of(ctx)
    if sum([bool(words), file is not None, everything]) != 1:
        raise usage_error("what to cancel is not said", "name topics, or say --all or --file")
    if text_format and file is None:
        raise usage_error("Kafka's tool cancels what a file names", "say --file")
    wanted = parse_plan(file, None) if file else None
    moving = ask(session, list_reassignments)
    chosen = _chosen(moving, words, wanted.replicas if wanted else None)
    if not chosen and not text_format:
        session.out.note("nothing of that is being reassigned")
        return None
    if not agreed(session, _cancel_plan(moving, chosen), yes=yes, dry_run=dry_run):
        return None
    if text_format and wanted:
        return _cancel_as_kafka(session, wanted, moving, preserve_throttles=preserve_throttles)
    outcomes = _cancel(session, chosen)
    if not preserve_throttles:
        clear_leaked(session)
    show_outcomes(session.out, outcomes, "partition", "cancelled")
    return None


def _chosen(
    moving: Moving, words: Sequence[str] | None, wanted: Assignment | None
) -> list[TopicPartition]:
    if wanted is not None:
        return [partition for partition in moving if partition in wanted]
    if words:
        return PartitionChoice(parse_partition_words(words)).pick(moving)
    return list(moving)


def _cancel_plan(moving: Moving, chosen: Sequence[TopicPartition]) -> Plan:
    rows = [moving[partition].row() for partition in chosen]
    count = f"{len(chosen)} reassignment{'s' * (len(chosen) != 1)}"
    return Plan(f"Cancel {count}?", rows, CANCEL_COLUMNS, "topic")


def _cancel(session: Session, chosen: Sequence[TopicPartition]) -> list[Outcome]:
    """Cancel them; one that has come to its end meanwhile needs no cancelling."""

    async def question(client: Client) -> list[Outcome]:
        return await cancel_reassignments(client, chosen, timeout_s=session.timeout)

    outcomes = ask(session, question) if chosen else []
    return [
        Outcome(one.name, message="was done already")
        if one.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        else one
        for one in outcomes
    ]


def _cancel_as_kafka(
    session: Session, wanted: ReassignmentFile, moving: Moving, *, preserve_throttles: bool
) -> ExitStatus:
    # Kafka's tool leaves out partitions that only gain replicas.
    active = [
        tp
        for tp in moving
        if tp in wanted.replicas and (not moving[tp].adding or moving[tp].removing)
    ]
    outcomes = _cancel(session, active)
    if any(one.error for one in outcomes):
        session.out.lines(failed_lines(outcomes, cancelling=True))
        return ExitStatus.FAILED
    session.out.lines([cancelled_line(active)])
    dirs = ask(session, describe_log_dirs) if wanted.log_dirs else []
    back = {
        (move.partition, move.broker): move.current
        for move in log_dir_moves(wanted.log_dirs, dirs)
        if move.state.is_active and move.current
    }
    if back:
        session.out.lines(log_dir_lines(_move_log_dirs(session, ReassignmentFile({}, back))))
    else:
        session.out.text(NO_MOVES_ACTIVE)  # the tool forgets to end this line
    if not preserve_throttles:
        clear_as_kafka_does(session, wanted.replicas)
    return ExitStatus.OK
