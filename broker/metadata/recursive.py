"""Whole branches of a store: what one operation on one node cannot do."""

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from broker.metadata.errors import NodeExists, NoNode
from broker.metadata.store import (
    Delete,
    MetadataStore,
    Operation,
    Result,
    Stat,
    join,
    parent_of,
)

# ZooKeeper refuses requests above jute.maxbuffer, 1 MiB less a byte, operations and all.
MAX_BATCH_BYTES = 512 * 1024
# What an operation needs beside its path and data: header, version or flags, ACL.
_OPERATION_BYTES = 64


class BranchNode(NamedTuple):
    """A node of a branch."""

    path: str
    data: bytes | None
    stat: Stat


async def create_recursive(store: MetadataStore, path: str, data: bytes | None = None) -> None:
    """Create the node, and whatever is missing above it without data; NodeExists."""
    try:
        await store.create(path, data)
    except NoNode:
        await ensure_path(store, parent_of(path))
        await store.create(path, data)


async def ensure_path(store: MetadataStore, path: str) -> None:
    """Create what is missing of `path`, without data; nothing if it is there."""
    if await store.exists(path):
        return
    try:
        await create_recursive(store, path)
    except NodeExists:
        return  # another broker is starting too


async def delete_recursive(store: MetadataStore, path: str) -> None:
    """Delete the node and all below it; what goes meanwhile, or is not there, is no error.

    A child that others create meanwhile makes it NotEmpty.
    """
    found = [node.path for node in reversed(await read_branch(store, path))]
    try:
        await multi_in_batches(store, [Delete(path) for path in found])
    except NoNode:  # somebody else is at it too
        for path in found:
            await _delete_if_there(store, path)


async def _delete_if_there(store: MetadataStore, path: str) -> None:
    with suppress(NoNode):
        await store.delete(path)


async def read_branch(store: MetadataStore, path: str) -> list[BranchNode]:
    """The node and all below it, parents before children; none where there is no node.

    Not a snapshot: what changes meanwhile is read as it was or as it is.
    """
    try:
        data, stat = await store.get(path)
        names = await store.children(path) if stat.num_children else []
    except NoNode:
        return []  # gone since its parent was asked
    # All at once: over a network the way there and back is what takes the time.
    below = await asyncio.gather(*(read_branch(store, join(path, name)) for name in names))
    return [BranchNode(path, data, stat), *itertools.chain.from_iterable(below)]


async def multi_in_batches(store: MetadataStore, operations: Sequence[Operation]) -> list[Result]:
    """As `multi`, but in as many as ZooKeeper's limit makes necessary: atomic each, not together.

    Those before a failing one stay made.
    """
    results: list[Result] = []
    for batch in batches(operations):
        results += await store.multi(batch)
    return results


def batches(operations: Iterable[Operation]) -> list[list[Operation]]:
    """The operations in their order, in as few batches as ZooKeeper's limit allows."""
    found: list[list[Operation]] = []
    room = 0
    for operation in operations:
        size = _OPERATION_BYTES + len(operation.path) + len(getattr(operation, "data", b"") or b"")
        if not found or size > room:
            found.append([])
            room = MAX_BATCH_BYTES
        found[-1].append(operation)
        room -= size
    return found
