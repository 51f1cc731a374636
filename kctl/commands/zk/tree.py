"""`kctl zk tree`."""

import asyncio
from typing import Annotated

import typer

from kctl.admin.znodes import read_tree
from kctl.cli.arguments.zookeeper import ZooKeeperOption
from kctl.cli.options import session_of
from kctl.commands.zk.arguments import Directory, Path, znode_place
from kctl.views.znodes import COLUMNS, znode_row, znode_tree


def tree(
    ctx: typer.Context,
    path: Path = "/",
    depth: Annotated[
        int | None, typer.Option(min=1, help="Depth of the tree (default: unlimited).")
    ] = None,
    zookeeper: ZooKeeperOption = None,
    directory: Directory = None,
) -> None:
    """Show a znode and its descendants as a tree."""
    session = session_of(ctx)
    found = asyncio.run(read_tree(znode_place(session, zookeeper, directory), path))
    top = found[0].depth
    shown = [node for node in found if depth is None or node.depth - top <= depth]
    if session.output.is_for_people:
        session.out.tree(znode_tree(shown))
    else:
        session.out.rows(map(znode_row, shown), COLUMNS, name="path")
