"""Rows, columns and the tree of `kctl zk`."""

from collections.abc import Iterator, Mapping, Sequence

from kctl.cli.tables import Column, Row
from kctl.cli.times import iso_time
from kctl.model.znodes import Znode

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
"""Longest description of a znode in the tree."""


def znode_row(node: Znode) -> Row:
    """A znode as a row of COLUMNS or a record of RECORD_COLUMNS."""
    return {
        "name": node.name,
        "path": node.path,
        "kind": node.explained.kind,
        "summary": node.explained.summary,
        "value": node.explained.value,
        "version": node.version,
        "children": node.num_children,
        "ephemeral": node.is_ephemeral,
        "created": iso_time(node.created_ms),
        "modified": iso_time(node.modified_ms),
        "czxid": node.czxid,
        "mzxid": node.mzxid,
    }


def tree_lines(nodes: Sequence[Znode]) -> Iterator[str]:
    """The tree as lines; `nodes` has parents before children, the first is the root.

    A node without data and with one child shares its line, as in `0/state`.
    """
    children: dict[str, list[Znode]] = {}
    for node in nodes[1:]:
        children.setdefault(node.path.rpartition("/")[0] or "/", []).append(node)
    top = nodes[0]
    yield f"{top.path}{_summary(top)}"
    yield from _descendant_lines(top.path, "", children)


def _descendant_lines(path: str, rail: str, children: Mapping[str, list[Znode]]) -> Iterator[str]:
    """The lines of a node's descendants; `rail` is the prefix of all of them."""
    found = children.get(path, [])
    for number, node in enumerate(found, start=1):
        is_last = number == len(found)
        name, end = node.name, node
        while not end.explained.summary and len(children.get(end.path, [])) == 1:
            (end,) = children[end.path]
            name = f"{name}/{end.name}"
        yield f"{rail}{'└── ' if is_last else '├── '}{name}{_summary(end)}"
        yield from _descendant_lines(end.path, rail + ("    " if is_last else "│   "), children)


def _summary(node: Znode) -> str:
    text = node.explained.summary
    if len(text) > MAX_SUMMARY:
        text = f"{text[:MAX_SUMMARY]}…"
    return f"  {text}" if text else ""
