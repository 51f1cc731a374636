"""ZooKeeper's address: from `--zookeeper`, the environment, or the context."""

from typing import Annotated

import typer

from kctl.cli.contexts import refuse_empty_variable
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session, refuse_empty_option


def not_empty(given: str | None) -> str | None:
    """Refuse an empty `--zookeeper`, which would otherwise select another cluster."""
    refuse_empty_option("--zookeeper", given)
    return given


ZooKeeperOption = Annotated[
    str | None,
    typer.Option(
        "-z",
        "--zookeeper",
        metavar="HOST:PORT,…/CHROOT",
        envvar="KCTL_ZOOKEEPER",
        show_envvar=False,
        help="ZooKeeper connect string of the cluster. [KCTL_ZOOKEEPER]",
        callback=not_empty,
    ),
]
OldGroupsOption = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT,…/CHROOT",
        help="Use groups of old consumers, stored in this ZooKeeper.",
        callback=not_empty,
    ),
]


def zookeeper_of(session: Session, given: str | None) -> str:
    """The connect string; CliError if no ZooKeeper is configured."""
    if given is None:
        refuse_empty_variable("KCTL_ZOOKEEPER")
    named = given or session.active_context[1].zookeeper
    if not named:
        raise CliError(
            "no ZooKeeper specified",
            "use -z HOST:PORT/CHROOT, or store it: kctl context set NAME --zookeeper …",
            ExitStatus.USAGE,
        )
    return named
