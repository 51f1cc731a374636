"""A command that prints its session, to test how options reach commands."""

from dataclasses import asdict
from typing import Annotated, ClassVar

import typer

from kctl.app import RootGroup
from kctl.cli.command_tree import LazyCommand, command, noun
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import session_of

app = noun("A noun for tests.")


@command(app, "show", examples=["kctl probe show"])
def show(ctx: typer.Context) -> None:
    """Print the session."""
    session = session_of(ctx)
    state = asdict(session)
    del state["find_cluster_id"]  # a function
    session.out.lines([repr(state)])


@command(app, "fail", examples=["kctl probe fail"])
def fail(ctx: typer.Context, how: Annotated[str, typer.Argument()]) -> ExitStatus:
    """Fail in the given way."""
    failures = {
        "known": CliError("the topic is gone", "create it with kctl topics create"),
        "slow": CliError("no answer", status=ExitStatus.TIMED_OUT),
        "bug": KeyError("surprise"),
        "interrupt": KeyboardInterrupt(),
        "abort": typer.Abort(),
    }
    if how == "stumble":
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise KeyError("while clearing up")  # noqa: B904 - as a library would
    if how in failures:
        raise failures[how]
    return ExitStatus.FOUND


class ProbeRoot(RootGroup):
    """kctl with the probe as its only command."""

    lazy_commands: ClassVar = {"probe": LazyCommand("tests.support.probe", "A noun for tests.")}


probe_app = typer.Typer(cls=ProbeRoot, add_completion=False, callback=lambda: None)
