"""Reads znodes: one, its children, or a subtree. Nothing is written."""

import asyncio
import sys

from broker.metadata.errors import NoNode
from broker.metadata.recursive import BranchNode, read_branch
from broker.metadata.store import MetadataStore, check_path, join
from kctl.admin.metadata_place import Place
from kctl.admin.znode_kinds import explain
from kctl.cli.errors import CliError, ExitStatus
from kctl.model.cluster import Controllership
from kctl.model.znodes import Znode


async def read_node(place: Place, path: str) -> Znode:
    """One node; CliError if it does not exist."""
    async with place.opened(create=False) as store:
        return await _read(store, checked_path(path))


async def read_children(place: Place, path: str) -> list[Znode]:
    """The children of `path`, sorted; CliError if it does not exist."""
    checked = checked_path(path)
    async with place.opened(create=False) as store:
        await _read(store, checked)
        names = sorted(await store.children(checked), key=_natural)
        return list(await asyncio.gather(*(_read(store, join(checked, name)) for name in names)))


async def read_tree(place: Place, path: str) -> list[Znode]:
    """The node and its descendants, parents before children; CliError if it does not exist."""
    async with place.opened(create=False) as store:
        found = await read_branch(store, checked_path(path))
    if not found:
        raise _no_node(path)
    ordered = sorted(found, key=lambda node: [_natural(part) for part in node.path.split("/")])
    return [_znode(node) for node in ordered if not node.path.startswith("/zookeeper")]


async def read_controllership(place: Place) -> Controllership:
    """Id and epoch of the controller, and when it was elected."""
    async with place.opened(create=False) as store:
        try:
            data, stat = await store.get("/controller")
        except NoNode:
            return Controllership(None, None, None)
        # The controller writes its epoch right after its znode.
        epoch = await _read(store, "/controller_epoch")
    return Controllership(
        explain("/controller", data).value.get("brokerid"),
        int(epoch.data or b"0"),
        stat.ctime,
    )


async def _read(store: MetadataStore, path: str) -> Znode:
    try:
        data, stat = await store.get(path)
    except NoNode as error:
        raise _no_node(path) from error
    return _znode(BranchNode(path, data, stat))


def _znode(node: BranchNode) -> Znode:
    stat = node.stat
    return Znode(
        node.path,
        node.data,
        explain(node.path, node.data),
        version=stat.version,
        num_children=stat.num_children,
        is_ephemeral=bool(stat.ephemeral_owner),
        created_ms=stat.ctime,
        modified_ms=stat.mtime,
        czxid=stat.czxid,
        mzxid=stat.mzxid,
    )


def checked_path(path: str) -> str:
    """Normalise `brokers/ids/` to `/brokers/ids`; a usage error for an invalid path."""
    full = f"/{path.strip('/')}"
    try:
        check_path(full)
    except ValueError as error:
        raise CliError(str(error), "e.g. /brokers/topics", ExitStatus.USAGE) from error
    return full


def _natural(name: str) -> tuple[int, str]:
    """Sort key: numbers numerically, before names."""
    return (int(name), "") if name.isdecimal() else (sys.maxsize, name)


def _no_node(path: str) -> CliError:
    return CliError(f"no such znode: {path}", "kctl zk tree shows the znodes")
