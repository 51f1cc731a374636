"""Confirmation of changes.

Creating things is never confirmed. Commands that delete or overwrite show a plan first:

    --dry-run       the plan is the result, on stdout; nothing is changed
    --yes           no confirmation, except in a protected context
    --confirm NAME  no confirmation; NAME must be the context of the cluster, also a protected one
    on a terminal   the plan on stderr, then a prompt
    otherwise       the plan on stderr, then an error: status 1, nothing is changed

A `read_only` context refuses every change; in a `protected` one its name must be typed. Both hold
for the cluster of the context, however it is addressed; see `guards`.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from kctl.cli.errors import CliError
from kctl.cli.guards import Guard, guards_of
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
    results: Sequence[Column]
    """The columns printed after the change. *Invariant*: a wrong name in --columns or --sort-by is
    refused before it."""


def refuse_if_read_only(session: Session, results: Sequence[Column] = ()) -> list[Guard]:
    """CliError if a context makes the cluster read-only; else the contexts that protect it.

    Also if --columns or --sort-by name no column of `results`, which are printed after the change.
    """
    if results:
        session.out.options.require(results)
    guards = guards_of(session)
    for guard in guards:
        if guard.context.read_only:
            raise CliError(
                f"context {guard.name!r} is read-only: nothing was changed",
                f"kctl context set {guard.name} --no-read-only allows changes",
            )
    return guards


def confirm_plan(session: Session, plan: Plan, *, yes: bool, dry_run: bool) -> bool:
    """Whether to execute `plan`; CliError or Abort if the user did not confirm it.

    False only for a dry run, after the plan has been printed.
    """
    if dry_run:
        show_dry_run(session, plan)
        return False
    all_guards = refuse_if_read_only(session, plan.results)
    guards = [guard.name for guard in all_guards if guard.context.protected]
    if session.confirm is not None:
        _check_confirmed(session, plan, guards)
        return True
    if yes and not guards:
        return True
    session.out.plan(plan.rows, plan.columns)
    if not can_ask():
        raise _cannot_confirm(plan, guards)
    if guards:
        _ask_for_name(plan, guards[0])
    else:
        _ask_yes_or_no(plan)
    return True


def _check_confirmed(session: Session, plan: Plan, guards: Sequence[str]) -> None:
    """CliError if `--confirm` names another context than those of this cluster."""
    expected = guards or [name for name in [session.active_context[0]] if name]
    if session.confirm not in expected:
        wanted = " or ".join(expected) if expected else "none: no context is in use"
        raise CliError(
            f"{plan.question} --confirm {session.confirm} does not name the context of this"
            f" cluster ({wanted}): nothing was changed",
            "check the cluster; kctl context list shows the contexts",
        )


def show_dry_run(session: Session, plan: Plan) -> None:
    """Print the plan as the command's result."""
    session.out.rows(plan.rows, plan.columns, name=plan.name)
    session.out.note("dry run: nothing was changed")


def can_ask() -> bool:
    """Whether the user can be prompted."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask_yes_or_no(plan: Plan) -> None:
    """Abort unless the answer is yes; any other word is a no."""
    answer = _answer(f"{plan.question} [y/N]", default="", show_default=False)
    if answer.strip().lower() not in ("y", "yes"):
        raise typer.Abort


def _ask_for_name(plan: Plan, name: str) -> None:
    question = f"{plan.question} The context is protected; type {name} to continue"
    if _answer(question) != name:
        raise typer.Abort


def _answer(question: str, **options: object) -> str:
    try:
        return str(typer.prompt(question, err=True, **options))  # type: ignore[arg-type]
    except typer.Abort:
        typer.echo(err=True)  # after Ctrl-C the cursor is still behind the question
        raise


def _cannot_confirm(plan: Plan, guards: Sequence[str]) -> CliError:
    if guards:
        return CliError(
            f"{plan.question} Context {guards[0]!r} is protected: nothing was changed",
            f"--confirm {guards[0]} confirms it; --yes is not enough",
        )
    return CliError(
        f"{plan.question} Cannot ask for confirmation without a terminal: nothing was changed",
        "use --yes to skip the confirmation, or --dry-run to preview",
    )
