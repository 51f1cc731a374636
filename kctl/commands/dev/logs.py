"""`kctl dev logs`."""

import time
from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.errors import CliError
from kctl.cli.options import session_of
from kctl.commands.dev.arguments import ZOOKEEPER, State, known_broker
from kctl.dev.brokers import state_directory
from kctl.dev.zookeeper import dev_zookeeper

_FOLLOW_PAUSE_S = 0.2


def logs(
    ctx: typer.Context,
    server: Annotated[str, typer.Argument(help=f"Id of the broker, or {ZOOKEEPER}.")] = "1",
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Keep printing new lines.")
    ] = False,
    state: State = None,
) -> None:
    """Print the log of a broker or of the ZooKeeper."""
    out = session_of(ctx).out
    with _log_file(state_directory(state), server).open(errors="replace") as log:
        while True:
            out.text(log.read())
            if not follow:
                return
            time.sleep(_FOLLOW_PAUSE_S)


def _log_file(state: Path, server: str) -> Path:
    zookeeper = dev_zookeeper(state)
    if server == ZOOKEEPER and zookeeper.exists:
        return zookeeper.log_file
    if not server.isdecimal():
        raise CliError(f"there is no {server}", "kctl dev status lists the servers")
    return known_broker(state, int(server)).log_file
