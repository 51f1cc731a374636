"""Arguments of `kctl zk`, and the store they name."""

from typing import Annotated

import typer

from kctl.admin.metadata_place import Place, zookeeper_place
from kctl.cli.arguments.zookeeper import zookeeper_of
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session

Path = Annotated[str, typer.Argument(help="Path of the znode.")]
Directory = Annotated[
    str | None,
    typer.Option(
        "--directory",
        metavar="DIR",
        help="First log directory of a stopped broker with an embedded store.",
    ),
]


def znode_place(session: Session, zookeeper: str | None, directory: str | None) -> Place:
    """The store to read: that of --directory, else a ZooKeeper."""
    if directory and zookeeper:
        raise CliError("--zookeeper and --directory cannot be combined", "", ExitStatus.USAGE)
    if directory:
        return Place(directory, session.timeout)
    return zookeeper_place(zookeeper_of(session, zookeeper), session.timeout)
