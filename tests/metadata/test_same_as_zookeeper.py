"""The embedded store gives the same results as a real ZooKeeper for any operations."""

import asyncio
import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.metadata.embedded import EmbeddedStore
from broker.metadata.errors import StoreError
from broker.metadata.recursive import read_branch
from broker.metadata.store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    Result,
    SetData,
    Stat,
)
from broker.metadata.zookeeper import ZooKeeperSettings, ZooKeeperStore
from tests.support.zookeeper import ZooKeeper

# Few names, so that operations meet; `/a/b/c` deep, so that parents are missing.
PATHS = st.sampled_from(["/a", "/a/b", "/a/b/c", "/a/s_0000000001", "/d", "/d/a"])
DATA = st.sampled_from([None, b"", b"x", b"longer"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Create, PATHS, DATA, st.booleans(), st.just(False)),
    st.builds(Create, st.sampled_from(["/a/s_", "/d/", "/s_"]), DATA, st.booleans(), st.just(True)),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS),
)
SCRIPTS = st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), min_size=1, max_size=12)
Seen = list[object]

roots = itertools.count()


async def play(store: MetadataStore, root: str, script: list[list[Operation]]) -> Seen:
    """The result of each multi and the final tree, without zxids and times."""
    await store.create(root)
    seen: Seen = []
    for operations in script:
        rooted = [replace(operation, path=root + operation.path) for operation in operations]
        try:
            seen.append([_comparable(result, root) for result in await store.multi(rooted)])
        except StoreError as error:
            seen.append((type(error), error.path.removeprefix(root)))
    for node in await read_branch(store, root):
        is_ephemeral = node.stat.ephemeral_owner == store.session.id
        assert is_ephemeral or node.stat.ephemeral_owner == 0
        path = node.path.removeprefix(root)
        seen.append((path, node.data, is_ephemeral, _comparable(node.stat, root)))
    return seen


def _comparable(result: Result, root: str) -> object:
    if isinstance(result, Stat):
        return result.version, result.cversion, result.num_children
    return result.removeprefix(root) if result else None


async def play_on_both(connect: str, script: list[list[Operation]]) -> tuple[Seen, Seen]:
    root = f"/r{next(roots)}"
    with tempfile.TemporaryDirectory() as directory:
        embedded = EmbeddedStore.open(Path(directory) / "metadata.db")
        ours = await play(embedded, root, script)
        await embedded.close()
    zookeeper = await ZooKeeperStore.open(ZooKeeperSettings(connect))
    try:
        return ours, await play(zookeeper, root, script)
    finally:
        await zookeeper.close()


@pytest.mark.zk
@settings(max_examples=60)
@given(script=SCRIPTS)
def test_every_script_has_the_same_results_and_the_same_final_tree(
    zookeeper_server: ZooKeeper, script: list[list[Operation]]
) -> None:
    ours, zookeepers = asyncio.run(play_on_both(zookeeper_server.address, script))
    assert ours == zookeepers


@settings(max_examples=60)
@given(script=SCRIPTS)
def test_every_final_tree_is_the_same_after_reopening_except_for_ephemerals(
    script: list[list[Operation]],
) -> None:
    async def end_twice() -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "metadata.db"
            store = EmbeddedStore.open(path)
            await play(store, "/r", script)
            before = await read_branch(store, "/r")
            await store.close()
            store = EmbeddedStore.open(path)
            after = await read_branch(store, "/r")
            await store.close()
        assert [(n.path, n.data, n.stat.version, n.stat.czxid) for n in after] == [
            (n.path, n.data, n.stat.version, n.stat.czxid)
            for n in before
            if not n.stat.ephemeral_owner
        ]

    asyncio.run(end_twice())
