"""Writes of one controller epoch: in batches, divided where some fail, none when it is over."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.controller.elector import FirstElector
from broker.controller.fenced_store import ControllerMoved, FencedStore
from broker.controller.leadership import Leadership
from broker.metadata import recursive
from broker.metadata.embedded import EmbeddedStore
from broker.metadata.errors import ConnectionLoss
from broker.metadata.recursive import ensure_path
from broker.metadata.store import Operation, Result
from broker.metadata.znodes.topics import PartitionStateZnode, TopicZnode
from broker.model import TopicPartition

NAMES = [TopicPartition("orders", index) for index in range(10)]


@asynccontextmanager
async def led_partitions(tmp_path: Path) -> AsyncIterator[FencedStore]:
    """Ten partitions that broker 1 leads, in the store of an elected controller."""
    store = EmbeddedStore.open(tmp_path / "metadata.db")
    elected = await FirstElector(store, 1, ManualClock()).elect()
    assert elected is not None
    fenced = FencedStore(store, *elected)
    await ensure_path(store, TopicZnode.path("orders"))
    first = {name: Leadership.first([1, 2]) for name in NAMES}
    assert len(await fenced.create_leaderships(first, ["orders"])) == 10
    try:
        yield fenced
    finally:
        await store.close()


def led_by_2(known: dict[TopicPartition, Leadership]) -> dict[TopicPartition, Leadership]:
    return {name: state.led_by(2) for name, state in known.items()}


async def test_what_is_written_reads_back_with_its_epochs(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        written = await store.update_leaderships(led_by_2(await store.leaderships(NAMES)))
        assert await store.leaderships(NAMES) == written
        assert {(s.leader, s.leader_epoch, s.partition_epoch) for s in written.values()} == {
            (2, 1, 1)
        }


async def test_partitions_that_others_have_changed_do_not_keep_the_rest(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        updates = led_by_2(await store.leaderships(NAMES))
        changed, gone = NAMES[3], NAMES[7]
        node = PartitionStateZnode(1, 0, (1,), 1)
        await store.store.set(PartitionStateZnode.path(changed), node.encode())
        await store.store.delete(PartitionStateZnode.path(gone))
        written = await store.update_leaderships(updates)
        assert set(NAMES) - set(written) == {changed, gone}


async def test_more_than_a_transaction_can_hold_is_written_in_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with led_partitions(tmp_path) as store:
        monkeypatch.setattr(recursive, "MAX_BATCH_BYTES", 600)
        sizes = []
        change = store.store.multi

        async def counting(operations: Sequence[Operation]) -> list[Result]:
            sizes.append(len(operations))
            return await change(operations)

        monkeypatch.setattr(store.store, "multi", counting)
        written = await store.update_leaderships(led_by_2(await store.leaderships(NAMES)))
        assert len(written) == 10
        assert len(sizes) > 1
        # Each of them is fenced.
        assert sum(sizes) == 10 + len(sizes)


async def test_write_is_repeated_when_the_connection_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with led_partitions(tmp_path) as store:
        change = store.store.multi
        breaks = iter([True, False])

        async def breaking(operations: Sequence[Operation]) -> list[Result]:
            if next(breaks):
                raise ConnectionLoss(operations[0].path)
            return await change(operations)

        known = await store.leaderships(NAMES)
        monkeypatch.setattr(store.store, "multi", breaking)
        assert len(await store.update_leaderships(led_by_2(known))) == 10


async def test_nothing_is_written_after_the_term(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        known = await store.leaderships(NAMES)
        store.close()
        with pytest.raises(ControllerMoved):
            await store.update_leaderships(led_by_2(known))
        assert await store.leaderships(NAMES) == known


async def test_state_of_a_later_controller_shows_that_this_one_is_over(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        later = PartitionStateZnode(2, 5, (2,), controller_epoch=2)
        await store.store.set(PartitionStateZnode.path(NAMES[0]), later.encode())
        with pytest.raises(ControllerMoved):
            await store.leaderships(NAMES)


async def test_partitions_half_made_by_a_crashed_controller_are_completed(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        more = [TopicPartition("orders", index) for index in (9, 10, 11)]
        await ensure_path(store.store, "/brokers/topics/orders/partitions/10")
        wanted = {name: Leadership.first([3]) for name in more}
        made = await store.create_leaderships(wanted)
        # What was there stays as it was.
        assert [made[name].leader for name in more] == [1, 3, 3]
