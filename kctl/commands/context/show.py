"""`kctl context list` and `kctl context show`."""

from typing import Annotated

import typer

from kctl.cli.contexts import config_path, read_contexts
from kctl.cli.errors import CliError
from kctl.cli.options import session_of
from kctl.views.contexts import COLUMNS, RECORD_COLUMNS, context_row


def list_contexts(ctx: typer.Context) -> None:
    """List the contexts."""
    contexts = read_contexts(config_path())
    rows = [context_row(name, contexts) for name in contexts.named]
    session_of(ctx).out.rows(rows, COLUMNS, name="name")


def show(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Context name (default: the current context).")
    ] = None,
) -> None:
    """Show one context."""
    session = session_of(ctx)
    contexts = read_contexts(config_path())
    wanted = name or session.context or contexts.current
    if not wanted:
        raise CliError("no current context", "kctl context use NAME chooses one")
    contexts.get(wanted)
    session.out.record(context_row(wanted, contexts), RECORD_COLUMNS, name="name")
