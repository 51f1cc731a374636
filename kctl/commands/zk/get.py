"""`kctl zk get`."""

import asyncio
import json
from typing import Annotated

import typer

from kctl.admin.znodes import read_node
from kctl.cli.arguments.zookeeper import ZooKeeperOption
from kctl.cli.options import session_of
from kctl.commands.zk.arguments import Directory, Path, znode_place
from kctl.views.znodes import RECORD_COLUMNS, znode_row


def get(
    ctx: typer.Context,
    path: Path,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the raw data, including secrets.")
    ] = False,
    zookeeper: ZooKeeperOption = None,
    directory: Directory = None,
) -> None:
    """Show one znode: kind, versions, times and data."""
    session = session_of(ctx)
    found = asyncio.run(read_node(znode_place(session, zookeeper, directory), path))
    if raw:
        session.out.chunks([found.data or b"", b"\n"])
        return
    session.out.record(znode_row(found), RECORD_COLUMNS, name="path")
    value = found.explained.value
    if session.output.is_for_people and isinstance(value, dict):
        text = json.dumps(value, indent=2, ensure_ascii=False)
        session.out.safe_lines(["", session.out.json_text(text)])
