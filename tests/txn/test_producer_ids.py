import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.metadata.embedded import EmbeddedStore
from broker.metadata.errors import ConnectionLoss
from broker.metadata.store import MetadataStore, Stat
from broker.metadata.znodes.cluster import ProducerIdBlockZnode
from broker.txn.producer_ids import ProducerIdManager, StoredProducerIdBlocks
from tests.txn.support import MemoryBlocks

PATH = ProducerIdBlockZnode.PATH


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[MetadataStore]:
    store = EmbeddedStore.open(directory / "store.sqlite", ManualClock(1))
    try:
        yield store
    finally:
        await store.close()


async def test_ids_of_many_at_once_are_all_different() -> None:
    blocks = MemoryBlocks()
    manager = ProducerIdManager(blocks)
    ids = await asyncio.gather(*(manager.generate() for _ in range(25)))
    assert sorted(ids) == list(range(25))
    assert blocks.allocated == 3


async def test_first_block_begins_with_zero_and_is_recorded_as_kafka_does(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        assert await StoredProducerIdBlocks(store, 7).allocate() == (0, 999)
        assert (await store.get(PATH)).data == (
            b'{"version":1,"broker":7,"block_start":"0","block_end":"999"}'
        )


async def test_block_follows_the_one_recorded_even_if_its_ids_were_never_used(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        await store.create(
            PATH, b'{"version":1,"broker":2,"block_start":"1000","block_end":"1999"}'
        )
        assert await StoredProducerIdBlocks(store, 7).allocate() == (2000, 2999)
    async with opened(tmp_path) as store:
        assert await StoredProducerIdBlocks(store, 7).allocate() == (3000, 3999)


async def test_node_without_data_counts_as_no_block(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.create(PATH)
        assert await StoredProducerIdBlocks(store, 7).allocate() == (0, 999)


async def test_brokers_that_ask_at_the_same_time_get_different_blocks(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        brokers = [StoredProducerIdBlocks(store, number) for number in range(5)]
        blocks = await asyncio.gather(*(broker.allocate() for broker in brokers))
        assert sorted(blocks) == [(first, first + 999) for first in range(0, 5000, 1000)]


async def test_last_ids_are_never_exceeded(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        last = ProducerIdBlockZnode(1, 2**63 - 1500, 2**63 - 501)
        await store.create(PATH, last.encode())
        with pytest.raises(ApiError) as caught:
            await StoredProducerIdBlocks(store, 7).allocate()
        assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_store_that_does_not_answer_makes_clients_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(path: str) -> Stat | None:
        raise ConnectionLoss(path)

    async with opened(tmp_path) as store:
        monkeypatch.setattr(store, "exists", lost)
        with pytest.raises(ApiError) as caught:
            await StoredProducerIdBlocks(store, 7).allocate()
        assert caught.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
