"""`kctl zk ls`."""

import asyncio

import typer

from kctl.admin.znodes import read_children
from kctl.cli.arguments.zookeeper import ZooKeeperOption
from kctl.cli.options import session_of
from kctl.commands.zk.arguments import Directory, Path, znode_place
from kctl.views.znodes import COLUMNS, znode_row


def ls(
    ctx: typer.Context,
    path: Path = "/",
    zookeeper: ZooKeeperOption = None,
    directory: Directory = None,
) -> None:
    """List the children of a znode with short descriptions."""
    session = session_of(ctx)
    found = asyncio.run(read_children(znode_place(session, zookeeper, directory), path))
    session.out.rows(map(znode_row, found), COLUMNS, name="name")
