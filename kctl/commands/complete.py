"""`kctl complete`: names for the completion scripts; hidden."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kctl.admin.live_names import Kind, live_names
from kctl.cli.command_tree import command, lone_command
from kctl.cli.errors import CliError
from kctl.cli.options import Session, session_of, shared_parameters

app = lone_command()

WHICH_CLUSTER = ("bootstrap_server", "context", "command_config")


@command(app, "complete", examples=["kctl complete topics -- topics describe -b localhost:9192"])
def complete(
    ctx: typer.Context,
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND", help="topics, groups, brokers, contexts, users or principals."
        ),
    ],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD…", help="The command line typed so far.")
    ] = None,
) -> None:
    """Print names for shell completion; nothing if the cluster does not answer."""
    session = session_of(ctx)
    session.may_ask = False
    take_cluster_from(words or (), session)
    try:
        session.out.lines(live_names(session, kind))
    except CliError:
        return  # an error message would garble the command line


def take_cluster_from(words: Sequence[str], session: Session) -> None:
    """Apply the shared options in the typed line to this run."""
    names = {
        option: parameter.name
        for parameter in shared_parameters()
        if parameter.name in WHICH_CLUSTER
        for option in parameter.opts
    }
    for index, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in names:
            following = words[index + 1] if index + 1 < len(words) else ""
            setattr(session, names[option], value if equals else following)
            session.given.add(names[option])
