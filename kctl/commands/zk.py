"""`kctl zk`: the znodes of a cluster, decoded where they are Kafka's. Nothing is written."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import typer

from kctl.admin.metadata_place import Place, zookeeper_place
from kctl.admin.znodes import ShownZnode, read_children, read_node, read_tree
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, noun
from kctl.options import Session, session_of
from kctl.output import OutputFormat
from kctl.records.times import iso_time
from kctl.tables import Column, Row
from kctl.words.zookeeper import ZooKeeperOption, zookeeper_of

app = noun("The znodes of a cluster: what ZooKeeper, or a broker alone, keeps for it.")

Path = Annotated[str, typer.Argument(help="Where the znode is.")]
Directory = Annotated[
    str | None,
    typer.Option(
        "--directory",
        metavar="DIR",
        help="The first log directory of a broker of ours that needs no ZooKeeper; stopped.",
    ),
]
COLUMNS = [
    Column("name"),
    Column("kind"),
    Column("children", right=True),
    Column("version", right=True),
    Column("ephemeral"),
    Column("modified", wide=True),
    Column("path", wide=True),
    Column("summary", "WHAT"),
]
RECORD_COLUMNS = [
    Column("path"),
    Column("kind"),
    Column("summary", "WHAT"),
    Column("version"),
    Column("children"),
    Column("ephemeral"),
    Column("created"),
    Column("modified"),
    Column("czxid", wide=True),
    Column("mzxid", wide=True),
]
MAX_SUMMARY = 100
"""A tree's lines are cut after as many letters of what a znode says."""


@command(
    app,
    "ls",
    examples=[
        "kctl zk ls /brokers/topics -z zk1:2181",
        "kctl zk ls /brokers/ids -z zk1:2181/kafka -o wide",
    ],
)
def ls(
    ctx: typer.Context,
    path: Path = "/",
    zookeeper: ZooKeeperOption = None,
    directory: Directory = None,
) -> None:
    """List the znodes below one, with what they say."""
    session = session_of(ctx)
    found = asyncio.run(read_children(_place(session, zookeeper, directory), path))
    session.out.rows(map(_row, found), COLUMNS, name="name")


@command(
    app,
    "get",
    examples=[
        "kctl zk get /controller -z zk1:2181",
        "kctl zk get /brokers/topics/orders -z zk1:2181/kafka --raw",
    ],
)
def get(
    ctx: typer.Context,
    path: Path,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the data as it stands, secrets included.")
    ] = False,
    zookeeper: ZooKeeperOption = None,
    directory: Directory = None,
) -> None:
    """Show one znode: what it is, its versions and times, and its data."""
    session = session_of(ctx)
    found = asyncio.run(read_node(_place(session, zookeeper, directory), path))
    if raw:
        session.out.chunks([found.data or b"", b"\n"])
        return
    session.out.record(_row(found), RECORD_COLUMNS, name="path")
    value = found.explained.value
    if session.output in (OutputFormat.TABLE, OutputFormat.WIDE) and isinstance(value, dict):
        session.out.lines(["", json.dumps(value, indent=2, ensure_ascii=False)])


@command(
    app,
    "tree",
    examples=[
        "kctl zk tree -z zk1:2181",
        "kctl zk tree /brokers --depth 3 -z zk1:2181/kafka",
        "kctl zk tree /config --directory /var/lib/kctl -o json",
    ],
)
def tree(
    ctx: typer.Context,
    path: Path = "/",
    depth: Annotated[
        int | None, typer.Option(min=1, help="How many levels below it are shown; all of them.")
    ] = None,
    zookeeper: ZooKeeperOption = None,
    directory: Directory = None,
) -> None:
    """Show a znode and all below it, with what they say."""
    session = session_of(ctx)
    found = asyncio.run(read_tree(_place(session, zookeeper, directory), path))
    top = found[0].depth
    shown = [node for node in found if depth is None or node.depth - top <= depth]
    if session.output in (OutputFormat.TABLE, OutputFormat.WIDE):
        session.out.lines(tree_lines(shown))
    else:
        session.out.rows(map(_row, shown), COLUMNS, name="path")


def tree_lines(nodes: Sequence[ShownZnode]) -> Iterator[str]:
    """A branch as a drawing; `nodes` are parents before children, and the first is above all.

    A node that says nothing and has one child shares its line, as in `0/state`.
    """
    children: dict[str, list[ShownZnode]] = {}
    for node in nodes[1:]:
        children.setdefault(node.path.rpartition("/")[0] or "/", []).append(node)
    top = nodes[0]
    yield f"{top.path}{_said(top)}"
    yield from _below(top.path, "", children)


def _below(path: str, rail: str, children: Mapping[str, list[ShownZnode]]) -> Iterator[str]:
    """The lines of what is below a node; `rail` is what stands left of all of them."""
    found = children.get(path, [])
    for number, node in enumerate(found, start=1):
        is_last = number == len(found)
        name, end = node.name, node
        while not end.explained.summary and len(children.get(end.path, [])) == 1:
            (end,) = children[end.path]
            name = f"{name}/{end.name}"
        yield f"{rail}{'└── ' if is_last else '├── '}{name}{_said(end)}"
        yield from _below(end.path, rail + ("    " if is_last else "│   "), children)


def _said(node: ShownZnode) -> str:
    text = node.explained.summary
    if len(text) > MAX_SUMMARY:
        text = f"{text[:MAX_SUMMARY]}…"
    return f"  {text}" if text else ""


def _row(node: ShownZnode) -> Row:
    stat = node.stat
    return {
        "name": node.name,
        "path": node.path,
        "kind": node.explained.kind,
        "summary": node.explained.summary,
        "value": node.explained.value,
        "version": stat.version,
        "children": stat.num_children,
        "ephemeral": bool(stat.ephemeral_owner),
        "created": iso_time(stat.ctime),
        "modified": iso_time(stat.mtime),
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
    }


def _place(session: Session, zookeeper: str | None, directory: str | None) -> Place:
    if directory and zookeeper:
        raise CliError("--zookeeper or --directory, not both", "", ExitStatus.USAGE)
    if directory:
        return Place(directory, session.timeout)
    return zookeeper_place(zookeeper_of(session, zookeeper), session.timeout)
