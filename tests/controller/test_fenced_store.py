"""Fenced writes: in batches, bisected where some fail, rejected after the controller epoch."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.controller.controller_election import FirstControllerElection
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
    elected = await FirstControllerElection(store, 1, ManualClock()).elect()
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


async def test_written_states_read_back_with_their_epochs(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        written = await store.update_leaderships(led_by_2(await store.leaderships(NAMES)))
        assert await store.leaderships(NAMES) == written
        assert {(s.leader, s.leader_epoch, s.partition_epoch) for s in written.values()} == {
            (2, 1, 1)
        }


async def test_partitions_changed_by_others_do_not_fail_the_rest(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        updates = led_by_2(await store.leaderships(NAMES))
        changed, gone = NAMES[3], NAMES[7]
        node = PartitionStateZnode(1, 0, (1,), 1)
        await store.store.set(PartitionStateZnode.path(changed), node.encode())
        await store.store.delete(PartitionStateZnode.path(gone))
        written = await store.update_leaderships(updates)
        assert set(NAMES) - set(written) == {changed, gone}


async def test_more_than_one_transaction_can_hold_is_written_in_several(
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


async def test_regression_update_applied_before_the_connection_broke_counts_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulation: otherwise brokers are never sent the leader epoch in the store."""
    async with led_partitions(tmp_path) as store:
        updates = led_by_2(await store.leaderships(NAMES))
        multi = store.store.multi
        is_broken = True

        async def break_after_applying(operations: Sequence[Operation]) -> list[Result]:
            nonlocal is_broken
            results = await multi(operations)
            if is_broken:
                is_broken = False
                raise ConnectionLoss(operations[0].path)
            return results

        monkeypatch.setattr(store.store, "multi", break_after_applying)
        written = await store.update_leaderships(updates)
        assert written.keys() == updates.keys()
        assert written == await store.leaderships(NAMES)


async def test_nothing_is_written_after_the_controller_epoch(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        known = await store.leaderships(NAMES)
        store.close()
        with pytest.raises(ControllerMoved):
            await store.update_leaderships(led_by_2(known))
        assert await store.leaderships(NAMES) == known


async def test_state_written_by_a_later_controller_raises_controller_moved(tmp_path: Path) -> None:
    async with led_partitions(tmp_path) as store:
        later = PartitionStateZnode(2, 5, (2,), controller_epoch=2)
        await store.store.set(PartitionStateZnode.path(NAMES[0]), later.encode())
        with pytest.raises(ControllerMoved):
            await store.leaderships(NAMES)


async def test_partitions_half_created_by_a_crashed_controller_are_completed(
    tmp_path: Path,
) -> None:
    async with led_partitions(tmp_path) as store:
        more = [TopicPartition("orders", index) for index in (9, 10, 11)]
        await ensure_path(store.store, "/brokers/topics/orders/partitions/10")
        wanted = {name: Leadership.first([3]) for name in more}
        made = await store.create_leaderships(wanted)
        # Existing states are kept.
        assert [made[name].leader for name in more] == [1, 3, 3]
