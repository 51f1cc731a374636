"""`kctl reassign run`."""

from pathlib import Path
from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.reassignments import list_reassignments
from kctl.cli.arguments.amounts import parse_rate
from kctl.cli.arguments.topics import Regex, TopicNames, select
from kctl.cli.confirmation import DryRun, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.options import Session, session_of
from kctl.commands.reassign.options import (
    AddBrokers,
    Additional,
    BalanceOption,
    Brokers,
    Drain,
    GoalOptions,
    RackAware,
    ReplicationFactor,
    Rollback,
    Throttle,
    parse_plan,
)
from kctl.commands.reassign.preview import move_plan
from kctl.operations.reassignment.proposals import (
    Proposal,
    already_in_progress,
    nothing_to_do,
    proposal_of_file,
    propose,
)
from kctl.operations.reassignment.runner import OnInterrupt, RunOptions, run_reassignment
from kctl.views.reassignments import RESULT_COLUMNS


def run(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    drain: Drain = None,
    add_brokers: AddBrokers = None,
    brokers: Brokers = None,
    replication_factor: ReplicationFactor = None,
    rack_aware: RackAware = None,
    balance: BalanceOption = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "--reassignment-json-file",
            metavar="FILE",
            help="Run this JSON plan instead of planning from goals; - reads from stdin.",
        ),
    ] = None,
    throttle: Throttle = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Partitions per batch.")
    ] = 20,
    interval: Annotated[
        float,
        typer.Option("--interval", metavar="SECONDS", min=0.05, max=86_400, help="Poll interval."),
    ] = 2.0,
    on_interrupt: Annotated[
        OnInterrupt,
        typer.Option(
            "--on-interrupt",
            metavar="WHAT",
            help="On Ctrl-C, SIGTERM or SIGHUP: cancel the current batch, or leave it in progress "
            "with its throttle, which kctl throttle clear --leaked removes afterwards.",
        ),
    ] = OnInterrupt.CANCEL,
    elect: Annotated[
        bool, typer.Option("--elect-leaders", help="Elect preferred leaders afterwards.")
    ] = False,
    additional: Additional = False,
    rollback: Rollback = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> ExitStatus | None:
    """Run a reassignment to completion: plan, confirm, move in batches, show progress, verify.

    Before anything changes, a plan that undoes the reassignment is written to a file. The throttle
    is removed at the end and after errors. Ctrl-C, SIGTERM and SIGHUP (a closed terminal) cancel
    the current batch, remove the throttle, and exit with 130; see --on-interrupt.
    """
    session = session_of(ctx)
    rate = parse_rate(throttle, "--throttle") if throttle else None
    goal_options = GoalOptions(brokers, drain, add_brokers, replication_factor, rack_aware, balance)
    proposal = _proposal(session, goal_options, names, file, regex=regex)
    if not proposal.changes:
        session.out.nothing(nothing_to_do(proposal))
        return None
    if not additional and (moving := ask(session, list_reassignments)):
        raise already_in_progress(moving)
    plan = move_plan(session, proposal, RESULT_COLUMNS)
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return None
    options = RunOptions(rate, batch_size, interval, rollback, on_interrupt, additional, elect)
    return run_reassignment(session, proposal, options)


def _proposal(
    session: Session,
    goal_options: GoalOptions,
    names: list[str] | None,
    file: Path | None,
    *,
    regex: bool,
) -> Proposal:
    goals = goal_options.goals()
    if file is None:
        return propose(session, select(names, regex=regex), goals)
    if names or not goals.is_nothing:
        raise usage_error(
            "a plan file cannot be combined with topics or goals", "omit the topics and goals"
        )
    wanted = parse_plan(file, None)
    if wanted.log_dirs:
        raise CliError(
            f"{file} contains log directories", "kctl reassign execute moves replicas into them"
        )
    return proposal_of_file(session, wanted.replicas)
