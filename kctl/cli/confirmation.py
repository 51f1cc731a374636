"""Confirmation of changes.

Creating things is never confirmed. Commands that delete or overwrite show a plan first:

    --dry-run       the plan is the result, on stdout; nothing is changed
    --yes           no confirmation
    on a terminal   the plan on stderr, then a prompt
    otherwise       the plan on stderr, then an error: status 1, nothing is changed

A `read_only` context refuses every change; in a `protected` one its name must be typed.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.cli.tables import Column, Name, Row

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done without changing anything.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")]


@dataclass(frozen=True)
class Plan:
    """What a command is about to do, as shown to the user."""

    question: str
    """E.g. `Delete 2 topics?`"""
    rows: Sequence[Row]
    columns: Sequence[Column]
    name: Name
    """The key that identifies a row."""


def refuse_if_read_only(session: Session) -> None:
    """CliError if the current context is read-only."""
    name, context = session.active_context
    if context.read_only:
        raise CliError(
            f"context {name!r} is read-only: nothing was changed",
            f"kctl context set {name} --no-read-only allows changes",
        )


def confirm_plan(session: Session, plan: Plan, *, yes: bool, dry_run: bool) -> bool:
    """Whether to execute `plan`; CliError or Abort if the user did not confirm it.

    False only for a dry run, after the plan has been printed.
    """
    if dry_run:
        show_dry_run(session, plan)
        return False
    refuse_if_read_only(session)
    name, context = session.active_context
    if yes and not context.protected:
        return True
    session.out.plan(plan.rows, plan.columns)
    if not can_ask():
        raise _nobody_to_ask(plan, name if context.protected else None)
    if context.protected:
        _ask_for_name(plan, name or "")
    else:
        typer.confirm(plan.question, abort=True, err=True)
    return True


def show_dry_run(session: Session, plan: Plan) -> None:
    """Print the plan as the command's result."""
    session.out.rows(plan.rows, plan.columns, name=plan.name)
    session.out.note("dry run: nothing was changed")


def can_ask() -> bool:
    """Whether the user can be prompted."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask_for_name(plan: Plan, name: str) -> None:
    question = f"{plan.question} The context is protected; type {name} to continue"
    if typer.prompt(question, err=True) != name:
        raise typer.Abort


def _nobody_to_ask(plan: Plan, protected: str | None) -> CliError:
    if protected:
        return CliError(
            f"{plan.question} Context {protected!r} is protected: nothing was changed",
            "run it on a terminal and type the name of the context; --yes is not enough",
        )
    return CliError(
        f"{plan.question} Cannot ask for confirmation without a terminal: nothing was changed",
        "use --yes to skip the confirmation, or --dry-run to preview",
    )
