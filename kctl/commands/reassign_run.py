"""`kctl reassign run`: plan, preview, execute, watch, verify, and leave nothing behind."""

from pathlib import Path
from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.reassignments import list_reassignments
from kctl.commands.reassign_change import move_plan, refuse_existing
from kctl.commands.reassign_runner import OnInterrupt, RunOptions, carry_out
from kctl.commands.reassign_words import (
    AddBrokers,
    Additional,
    BalanceOption,
    Brokers,
    Drain,
    GoalWords,
    Proposal,
    RackAware,
    ReplicationFactor,
    Rollback,
    Throttle,
    parse_plan,
    proposal_of_file,
    propose,
)
from kctl.confirm import DryRun, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.options import Session, session_of
from kctl.words.amounts import parse_rate
from kctl.words.partitions import usage_error
from kctl.words.topics import Regex, TopicNames, select


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
            help="Carry out this plan, instead of one made from goals; - is the standard input.",
        ),
    ] = None,
    throttle: Throttle = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Partitions that move at a time.")
    ] = 20,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.05, help="How often to look.")
    ] = 2.0,
    on_interrupt: Annotated[
        OnInterrupt,
        typer.Option(
            "--on-interrupt",
            metavar="WHAT",
            help="What Ctrl-C does with the batch under way: cancel it, or leave it to itself.",
        ),
    ] = OnInterrupt.CANCEL,
    elect: Annotated[
        bool, typer.Option("--elect-leaders", help="Elect preferred leaders when all is done.")
    ] = False,
    additional: Additional = False,
    rollback: Rollback = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> ExitStatus | None:
    """Move replicas from beginning to end: plan, ask, move in batches, watch, verify.

    Before anything changes, the plan that undoes it all is written to a file. A throttle is taken
    back at the end, on Ctrl-C, and when something fails.
    """
    session = session_of(ctx)
    rate = parse_rate(throttle, "--throttle") if throttle else None
    words = GoalWords(brokers, drain, add_brokers, replication_factor, rack_aware, balance)
    proposal = _proposal(session, words, names, file, regex=regex)
    if not proposal.changes:
        session.out.note("nothing has to move")
        return None
    if not additional and (moving := ask(session, list_reassignments)):
        raise refuse_existing(moving)
    if not agreed(session, move_plan(session, proposal), yes=yes, dry_run=dry_run):
        return None
    options = RunOptions(rate, batch_size, interval, rollback, on_interrupt, additional, elect)
    return carry_out(session, proposal, options)


def _proposal(
    session: Session, words: GoalWords, names: list[str] | None, file: Path | None, *, regex: bool
) -> Proposal:
    goals = words.goals()
    if file is None:
        return propose(session, select(names, regex=regex), goals)
    if names or not goals.is_nothing:
        raise usage_error("a plan file says all there is to say", "leave out topics and goals")
    wanted = parse_plan(file, None)
    if wanted.log_dirs:
        raise CliError(
            f"{file} names log directories", "kctl reassign execute moves replicas into them"
        )
    return proposal_of_file(session, wanted.replicas)
