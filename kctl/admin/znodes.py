"""Znodes of a cluster as they stand: one, its children, or a whole branch. Nothing is written."""

import asyncio
import sys
from dataclasses import dataclass

from broker.metadata.errors import NoNode
from broker.metadata.recursive import BranchNode, read_branch
from broker.metadata.store import MetadataStore, Stat, check_path, join, name_of
from kctl.admin.metadata_place import Place
from kctl.admin.znode_kinds import Explained, explain
from kctl.errors import CliError, ExitStatus


@dataclass(frozen=True)
class ShownZnode:
    """A node, read and explained."""

    path: str
    data: bytes | None
    stat: Stat
    explained: Explained

    @property
    def name(self) -> str:
        """The last part of its path; `/` for the root."""
        return name_of(self.path) or "/"

    @property
    def depth(self) -> int:
        """How many nodes are above it."""
        return 0 if self.path == "/" else self.path.count("/")


async def read_node(place: Place, path: str) -> ShownZnode:
    """One node; CliError if it does not exist."""
    async with place.opened(create=False) as store:
        return await _read(store, _checked(path))


async def read_children(place: Place, path: str) -> list[ShownZnode]:
    """The nodes just below `path`, by name; CliError if it does not exist."""
    checked = _checked(path)
    async with place.opened(create=False) as store:
        await _read(store, checked)
        names = sorted(await store.children(checked), key=_natural)
        return list(await asyncio.gather(*(_read(store, join(checked, name)) for name in names)))


async def read_tree(place: Place, path: str) -> list[ShownZnode]:
    """The node and all below it, parents before children; CliError if it does not exist."""
    async with place.opened(create=False) as store:
        found = await read_branch(store, _checked(path))
    if not found:
        raise _no_node(path)
    ordered = sorted(found, key=lambda node: [_natural(part) for part in node.path.split("/")])
    return [_shown(node) for node in ordered if not node.path.startswith("/zookeeper")]


async def _read(store: MetadataStore, path: str) -> ShownZnode:
    try:
        data, stat = await store.get(path)
    except NoNode as error:
        raise _no_node(path) from error
    return _shown(BranchNode(path, data, stat))


def _shown(node: BranchNode) -> ShownZnode:
    return ShownZnode(node.path, node.data, node.stat, explain(node.path, node.data))


def _checked(path: str) -> str:
    """`brokers/ids/` as `/brokers/ids`; a usage error for what no node can be called."""
    full = f"/{path.strip('/')}"
    try:
        check_path(full)
    except ValueError as error:
        raise CliError(str(error), "e.g. /brokers/topics", ExitStatus.USAGE) from error
    return full


def _natural(name: str) -> tuple[int, str]:
    """Numbers by their size, before everything else by name: partition 2 is before 10."""
    return (int(name), "") if name.isdecimal() else (sys.maxsize, name)


def _no_node(path: str) -> CliError:
    return CliError(f"there is no znode {path}", "kctl zk tree shows those there are")
