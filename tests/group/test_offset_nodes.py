import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError
from broker.group.offset_nodes import OffsetNodes
from broker.metadata.embedded import EmbeddedStore
from broker.metadata.store import MetadataStore
from broker.model import TopicPartition

A = TopicPartition("orders", 3)
PATH = "/consumers/readers/offsets/orders/3"


def with_store(directory: Path, work: Callable[[MetadataStore], Awaitable[None]]) -> None:
    async def run() -> None:
        store = EmbeddedStore.open(directory / "metadata", ManualClock())
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(run())


def test_offset_is_stored_as_decimal_text_in_the_znode_of_old_consumers(tmp_path: Path) -> None:
    async def work(store: MetadataStore) -> None:
        nodes = OffsetNodes(store)
        assert await nodes.read_offset("readers", A) is None
        await nodes.write_offset("readers", A, 5)
        assert (await store.get(PATH)).data == b"5"
        assert (await store.get("/consumers/readers/offsets")).data is None
        await nodes.write_offset("readers", A, 6)
        assert await nodes.read_offset("readers", A) == 6

    with_store(tmp_path, work)


def test_concurrent_commits_succeed(tmp_path: Path) -> None:
    async def work(store: MetadataStore) -> None:
        nodes = OffsetNodes(store)
        await asyncio.gather(*(nodes.write_offset("readers", A, n) for n in range(10)))
        assert await nodes.read_offset("readers", A) in range(10)

    with_store(tmp_path, work)


def test_error_for_an_invalid_znode_names_it(tmp_path: Path) -> None:
    async def work(store: MetadataStore) -> None:
        nodes = OffsetNodes(store)
        await nodes.write_offset("readers", A, 5)
        await store.set(PATH, b"five")
        with pytest.raises(ApiError, match=PATH):
            await nodes.read_offset("readers", A)
        await store.set(PATH, None)
        assert await nodes.read_offset("readers", A) is None

    with_store(tmp_path, work)


@pytest.mark.parametrize("group_id", ["", "a//b", "a/../b"])
def test_group_id_that_is_invalid_in_a_path_is_refused(tmp_path: Path, group_id: str) -> None:
    async def work(store: MetadataStore) -> None:
        nodes = OffsetNodes(store)
        with pytest.raises(ApiError):
            await nodes.write_offset(group_id, A, 5)
        with pytest.raises(ApiError):
            await nodes.read_offset(group_id, A)

    with_store(tmp_path, work)
