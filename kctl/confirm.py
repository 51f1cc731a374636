"""Before something is changed: whether it may be, and whether the user means it.

Creating never asks. What deletes or overwrites shows a plan first:

    --dry-run          the plan is the result, on stdout; nothing is changed
    --yes              nobody is asked
    on a terminal      the plan on stderr, then the question
    anything else      the plan on stderr, then a refusal: status 1, nothing is changed

A `read_only` context refuses every change; a `protected` one wants its name typed.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from kctl.errors import CliError
from kctl.options import Session
from kctl.tables import Column, Row, table_lines

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do it without asking.")]


@dataclass(frozen=True)
class Plan:
    """What a command is about to do, as the user gets to see it."""

    question: str
    """E.g. `Delete 2 topics?`"""
    rows: Sequence[Row]
    columns: Sequence[Column]
    name: str
    """The key that identifies a row."""


def refuse_if_read_only(session: Session) -> None:
    """CliError if the context in force allows no changes."""
    name, context = session.context_in_force
    if context.read_only:
        raise CliError(
            f"context {name!r} is read-only: nothing was changed",
            f"kctl context set {name} --no-read-only allows changes",
        )


def agreed(session: Session, plan: Plan, *, yes: bool, dry_run: bool) -> bool:
    """Whether to go on with `plan`; CliError or Abort if the user must be asked and did not agree.

    False only for a dry run, whose plan has then been printed.
    """
    if dry_run:
        show_dry_run(session, plan)
        return False
    refuse_if_read_only(session)
    name, context = session.context_in_force
    if yes and not context.protected:
        return True
    for line in table_lines(plan.rows, plan.columns):
        session.out.note(line)
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
    """Whether there is somebody who can read a question and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask_for_name(plan: Plan, name: str) -> None:
    question = f"{plan.question} The context is protected; type {name} to go on"
    if typer.prompt(question, err=True) != name:
        raise typer.Abort


def _nobody_to_ask(plan: Plan, protected: str | None) -> CliError:
    if protected:
        return CliError(
            f"{plan.question} Context {protected!r} is protected: nothing was changed",
            "run it on a terminal, where its name can be typed; --yes is not enough",
        )
    return CliError(
        f"{plan.question} There is no terminal to ask on: nothing was changed",
        "--yes goes on without asking, --dry-run shows what would be done",
    )
