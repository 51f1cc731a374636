"""`kctl complete`: what the completion scripts ask for names of the cluster. Not for people."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kctl.errors import CliError
from kctl.groups import command, lone_command
from kctl.live_names import Kind, live_names
from kctl.options import Session, session_of, shared_parameters

app = lone_command()

WHICH_CLUSTER = ("bootstrap_server", "context", "command_config")


@command(app, "complete", examples=["kctl complete topics -- topics describe -b localhost:9192"])
def complete(
    ctx: typer.Context,
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="topics, groups, brokers, …")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD…", help="The line as typed so far.")
    ] = None,
) -> None:
    """Print the names there are; nothing at all if the cluster cannot be asked."""
    session = session_of(ctx)
    session.may_ask = False
    take_cluster_from(words or (), session)
    try:
        session.out.lines(live_names(session, kind))
    except CliError:
        return  # an error message in the middle of a command line helps nobody


def take_cluster_from(words: Sequence[str], session: Session) -> None:
    """Which cluster the line is about: the shared options in it count as said to this run."""
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
            session.said.add(names[option])
