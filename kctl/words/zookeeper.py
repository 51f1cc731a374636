"""Which ZooKeeper is meant: `--zookeeper`, the environment, or the context in force."""

from typing import Annotated

import typer

from kctl.errors import CliError, ExitStatus
from kctl.options import Session

ZooKeeperOption = Annotated[
    str | None,
    typer.Option(
        "-z",
        "--zookeeper",
        metavar="HOST:PORT,…/CHROOT",
        envvar="KCTL_ZOOKEEPER",
        show_envvar=False,
        help="The cluster's ZooKeeper. [KCTL_ZOOKEEPER]",
    ),
]
OldGroupsOption = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT,…/CHROOT",
        help="Groups of old consumers, which are kept in this ZooKeeper.",
    ),
]


def zookeeper_of(session: Session, said: str | None) -> str:
    """The connect string; CliError if none was named."""
    named = said or session.context_in_force[1].zookeeper
    if not named:
        raise CliError(
            "no ZooKeeper named",
            "give -z HOST:PORT/CHROOT, or set it once: kctl context set NAME --zookeeper …",
            ExitStatus.USAGE,
        )
    return named
