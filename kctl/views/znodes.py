"""Rows, columns and the tree of `kctl zk`."""

from collections.abc import Mapping, Sequence

from kctl.cli.tables import Column, Row
from kctl.cli.theme import Style
from kctl.cli.times import iso_time
from kctl.cli.trees import Node
from kctl.model.znodes import Znode
from kctl.views.styles import if_any

COLUMNS = [
    Column("name"),
    Column("kind"),
    Column("children", right=True),
    Column("version", right=True),
    Column("ephemeral", style=if_any("ephemeral", Style.WARN)),
    Column("modified", wide=True),
    Column("path", wide=True),
    Column("summary", "WHAT", priority=1),
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


def znode_tree(nodes: Sequence[Znode]) -> Node:
    """The tree; `nodes` has parents before children, the first is the root.

    A node without data and with one child shares its line, as in `0/state`.
    """
    children: dict[str, list[Znode]] = {}
    for node in nodes[1:]:
        children.setdefault(node.path.rpartition("/")[0] or "/", []).append(node)
    return _node(nodes[0], nodes[0].path, children)


def _node(node: Znode, name: str, children: Mapping[str, list[Znode]]) -> Node:
    below = []
    for child in children.get(node.path, []):
        path, end = child.name, child
        while not end.explained.summary and len(children.get(end.path, [])) == 1:
            (end,) = children[end.path]
            path = f"{path}/{end.name}"
        below.append(_node(end, path, children))
    return Node(((name, Style.NAME), (_summary(node), None)), below)


def _summary(node: Znode) -> str:
    text = node.explained.summary
    if len(text) > MAX_SUMMARY:
        text = f"{text[:MAX_SUMMARY]}…"
    return f"  {text}" if text else ""
