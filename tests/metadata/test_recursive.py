"""Whole branches, on both stores."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from broker.metadata.errors import NodeExists
from broker.metadata.recursive import (
    create_recursive,
    delete_recursive,
    ensure_path,
    multi_in_batches,
    read_branch,
)
from broker.metadata.store import Create, MetadataStore, Operation, Result
from tests.metadata.conftest import StoreMaker


class LosesNode:
    """A store from which another client deletes a node just before the first change."""

    def __init__(self, store: MetadataStore, lost: str) -> None:
        self._store = store
        self._lost: str | None = lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        if self._lost:
            lost, self._lost = self._lost, None
            await self._store.delete(lost)
        return await self._store.multi(operations)


async def test_missing_parents_are_created_without_data(maker: StoreMaker) -> None:
    async with maker.open() as store:
        await create_recursive(store, "/a/b/c", b"x")
        await ensure_path(store, "/a/b/d/e")
        await ensure_path(store, "/a/b/d/e")
        found = [(node.path, node.data) for node in await read_branch(store, "/a")]
        assert found == [
            ("/a", None),
            ("/a/b", None),
            ("/a/b/c", b"x"),
            ("/a/b/d", None),
            ("/a/b/d/e", None),
        ]


async def test_existing_node_is_not_created_recursively(maker: StoreMaker) -> None:
    async with maker.open() as store:
        await create_recursive(store, "/a/b", b"x")
        with pytest.raises(NodeExists):
            await create_recursive(store, "/a/b", b"y")
        assert (await store.get("/a/b")).data == b"x"


async def test_branch_is_deleted_completely_and_a_missing_one_is_no_error(
    maker: StoreMaker,
) -> None:
    async with maker.open() as store:
        for path in ("/a/b/c", "/a/b/d", "/a/e", "/ab"):
            await ensure_path(store, path)
        await delete_recursive(store, "/a")
        await delete_recursive(store, "/a")
        assert [name for name in await store.children("/") if name.startswith("a")] == ["ab"]


async def test_branch_can_be_deleted_by_two_clients_at_once(maker: StoreMaker) -> None:
    async with maker.open() as store, maker.second(store) as other:
        await store.create("/a")
        await store.multi([Create(f"/a/{n}") for n in range(100)])
        await asyncio.gather(delete_recursive(store, "/a"), delete_recursive(other, "/a"))
        assert await store.exists("/a") is None


async def test_nodes_deleted_by_others_while_a_branch_is_deleted_are_no_error(
    maker: StoreMaker,
) -> None:
    async with maker.open() as store:
        await store.multi([Create("/a"), Create("/a/b"), Create("/a/c")])
        await delete_recursive(cast(MetadataStore, LosesNode(store, "/a/b")), "/a")
        assert await store.exists("/a") is None


async def test_more_than_zookeepers_request_limit_is_sent_in_batches(maker: StoreMaker) -> None:
    async with maker.open() as store:
        creations = [Create("/p"), *(Create(f"/p/{n}", bytes(100_000)) for n in range(15))]
        results = await multi_in_batches(store, creations)
        assert results == [creation.path for creation in creations]
        assert len(await store.children("/p")) == 15
