"""Operations on whole branches of a store, and in batches below ZooKeeper's request limit."""

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

# ZooKeeper refuses requests larger than jute.maxbuffer: 1 MiB less a byte by default, for all
# operations together.
MAX_BATCH_BYTES = 512 * 1024
# Bytes that an operation needs besides its path and data: header, version or flags, ACL.
_OPERATION_BYTES = 64


class BranchNode(NamedTuple):
    """A node of a branch."""

    path: str
    data: bytes | None
    stat: Stat


async def create_recursive(store: MetadataStore, path: str, data: bytes | None = None) -> None:
    """Create the node, and missing parents without data; NodeExists."""
    try:
        await store.create(path, data)
    except NoNode:
        await ensure_path(store, parent_of(path))
        await store.create(path, data)


async def ensure_path(store: MetadataStore, path: str) -> None:
    """Create the missing nodes of `path`, without data."""
    if await store.exists(path):
        return
    try:
        await create_recursive(store, path)
    except NodeExists:
        return  # another broker is starting too


async def delete_recursive(store: MetadataStore, path: str) -> None:
    """Delete the node and everything below it; nodes that do not exist are ignored.

    NotEmpty if another client creates a child meanwhile.
    """
    found = [node.path for node in reversed(await read_branch(store, path))]
    try:
        await multi_in_batches(store, [Delete(path) for path in found])
    except NoNode:  # another client deletes it too
        for path in found:
            await _delete_if_there(store, path)


async def _delete_if_there(store: MetadataStore, path: str) -> None:
    with suppress(NoNode):
        await store.delete(path)


async def read_branch(store: MetadataStore, path: str) -> list[BranchNode]:
    """The node and everything below it, parents before children; empty if it does not exist.

    Not a snapshot: changes made meanwhile may or may not be included.
    """
    try:
        data, stat = await store.get(path)
        names = await store.children(path) if stat.num_children else []
    except NoNode:
        return []  # deleted since its parent was read
    # Concurrently: over a network the round trips take most of the time.
    below = await asyncio.gather(*(read_branch(store, join(path, name)) for name in names))
    return [BranchNode(path, data, stat), *itertools.chain.from_iterable(below)]


async def multi_in_batches(store: MetadataStore, operations: Sequence[Operation]) -> list[Result]:
    """As `multi`, in as many transactions as ZooKeeper's limit requires.

    Each is atomic; those before a failing one remain applied.
    """
    results: list[Result] = []
    for batch in batches(operations):
        results += await store.multi(batch)
    return results


def batches(operations: Iterable[Operation]) -> list[list[Operation]]:
    """The operations in order, in as few batches as ZooKeeper's limit allows."""
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
