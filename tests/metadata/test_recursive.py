"""Whole branches, on both stores."""

import pytest

from broker.metadata.errors import NodeExists
from broker.metadata.recursive import (
    create_recursive,
    delete_recursive,
    ensure_path,
    multi_in_batches,
    read_branch,
)
from broker.metadata.store import Create
from tests.metadata.conftest import StoreMaker


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


async def test_node_that_is_there_is_not_created_recursively(maker: StoreMaker) -> None:
    async with maker.open() as store:
        await create_recursive(store, "/a/b", b"x")
        with pytest.raises(NodeExists):
            await create_recursive(store, "/a/b", b"y")
        assert (await store.get("/a/b")).data == b"x"


async def test_branch_is_deleted_whole_and_a_missing_one_is_no_error(maker: StoreMaker) -> None:
    async with maker.open() as store:
        for path in ("/a/b/c", "/a/b/d", "/a/e", "/ab"):
            await ensure_path(store, path)
        await delete_recursive(store, "/a")
        await delete_recursive(store, "/a")
        assert [name for name in await store.children("/") if name.startswith("a")] == ["ab"]


async def test_more_than_zookeeper_takes_at_once_goes_in_batches(maker: StoreMaker) -> None:
    async with maker.open() as store:
        creations = [Create("/p"), *(Create(f"/p/{n}", bytes(100_000)) for n in range(15))]
        results = await multi_in_batches(store, creations)
        assert results == [creation.path for creation in creations]
        assert len(await store.children("/p")) == 15
