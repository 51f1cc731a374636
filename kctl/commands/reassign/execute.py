"""`kctl reassign execute`."""

from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.reassignments import begin_reassignments, list_reassignments
from kctl.cli.arguments.amounts import parse_rate
from kctl.cli.confirmation import DryRun, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import KafkaText, Session, session_of
from kctl.commands.reassign.options import (
    Additional,
    KafkaPlanFile,
    PlanFile,
    Rollback,
    Throttle,
    parse_plan,
)
from kctl.commands.reassign.preview import move_plan
from kctl.model.assignments import ReassignmentFile
from kctl.model.outcomes import Outcome
from kctl.model.reassignments import Reassignments
from kctl.operations.reassignment.log_dirs import current_log_dirs, move_log_dirs
from kctl.operations.reassignment.proposals import (
    MissingPartition,
    already_in_progress,
    proposal_of_file,
)
from kctl.operations.reassignment.rollback import write_rollback
from kctl.operations.reassignment.throttling import Throttling
from kctl.views.kafka_text.reassign import (
    EXISTING,
    error_line,
    failed_lines,
    log_dir_lines,
    missing_text,
    rollback_lines,
    started_line,
    throttle_lines,
)
from kctl.views.outcomes import outcome_columns, show_outcomes

LogDirsThrottle = Annotated[
    str | None,
    typer.Option(
        "--log-dirs-throttle",
        "--log-dirs",
        "--replica-alter-log-dirs-throttle",
        metavar="RATE",
        help="Throttle of moves between log directories, in bytes per second.",
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
    """Start the reassignments of a plan file, and return; `reassign run` waits for completion.

    A throttle set here remains until `reassign verify --clear-throttles` or `kctl throttle clear`.
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
        words = missing_text(error.message) if is_missing else error.message
        session.out.lines([error_line(words)])
        return ExitStatus.FAILED
    plan = move_plan(session, proposal, outcome_columns("partition"))
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return None
    current = {tp: proposal.layout.replicas[tp] for tp in wanted.replicas}
    if as_kafka:
        session.out.lines(rollback_lines(current))
    before = ReassignmentFile(current, current_log_dirs(session, wanted))
    write_rollback(session, rollback, before)
    throttling = Throttling(session)
    throttling.set(wanted, moving, current, rate=rate, log_dirs_rate=dirs_rate)
    if as_kafka:
        session.out.lines(throttle_lines(rate, dirs_rate))
    return _begin(session, wanted, throttling, as_kafka=as_kafka)


def _refuse_existing(session: Session, moving: Reassignments, *, as_kafka: bool) -> ExitStatus:
    if not as_kafka:
        raise already_in_progress(moving)
    session.out.lines([EXISTING])
    return ExitStatus.FAILED


def _begin(
    session: Session, wanted: ReassignmentFile, throttling: Throttling, *, as_kafka: bool
) -> ExitStatus | None:
    async def begin(client: Client) -> list[Outcome]:
        return await begin_reassignments(client, wanted.replicas, timeout_s=session.timeout)

    outcomes = ask(session, begin, check="kctl reassign list")
    if all(one.error for one in outcomes):
        throttling.release()
    if as_kafka and any(one.error for one in outcomes):
        session.out.lines(failed_lines(outcomes))
        return ExitStatus.FAILED
    if as_kafka:
        session.out.lines([started_line(wanted.replicas)])
    started = move_log_dirs(session, wanted)
    if as_kafka:
        session.out.lines(log_dir_lines(started))
    else:
        show_outcomes(session.out, outcomes, "partition", "started")
    return None
