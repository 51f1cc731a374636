"""Controller elections: races, queues, lost responses."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.controller.controller_election import (
    ElectedEpoch,
    FairControllerElection,
    FirstControllerElection,
)
from broker.metadata.embedded import EmbeddedStore
from broker.metadata.errors import ConnectionLoss
from broker.metadata.store import Operation, Result
from broker.metadata.znodes.controller import ControllerCandidateZnode, ControllerZnode


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    store = EmbeddedStore.open(tmp_path / "metadata.db")
    try:
        yield store
    finally:
        await store.close()


async def controller_of(store: EmbeddedStore) -> int:
    return ControllerZnode.decode((await store.get(ControllerZnode.PATH)).data).broker_id


async def test_the_first_to_try_is_elected_and_every_election_raises_the_epoch(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        first, second = (FirstControllerElection(store, id_, ManualClock()) for id_ in (1, 2))
        won = await first.elect()
        assert won == ElectedEpoch(1, 1)
        assert await second.elect() is None
        assert await controller_of(store) == 1
        await first.resign(won)
        assert await second.elect() == ElectedEpoch(2, 2)


async def test_regression_node_left_by_the_same_session_does_not_block_the_next_election(
    tmp_path: Path,
) -> None:
    """Found by the simulation: a controller resigned while its session lived on."""
    async with opened(tmp_path) as store:
        election = FirstControllerElection(store, 1, ManualClock())
        assert await election.elect() == ElectedEpoch(1, 1)
        assert await election.elect() == ElectedEpoch(2, 2)
        assert await controller_of(store) == 1


async def test_replaced_controller_does_not_delete_the_node_of_its_successor(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        first, second = (FirstControllerElection(store, id_, ManualClock()) for id_ in (1, 2))
        old = await first.elect()
        assert old is not None
        await store.delete(ControllerZnode.PATH)
        assert await second.elect() is not None
        await first.resign(old)
        assert await controller_of(store) == 2


@pytest.mark.parametrize("is_carried_out", [True, False])
async def test_outcome_of_an_election_without_response_is_read_from_the_store(
    tmp_path: Path, is_carried_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as store:
        elector = FirstControllerElection(store, 1, ManualClock())
        await elector._known_epoch()  # so that the election is the next change
        change = store.multi

        async def lose_the_answer(operations: Sequence[Operation]) -> list[Result]:
            if is_carried_out:
                await change(operations)
            raise ConnectionLoss(operations[0].path)

        monkeypatch.setattr(store, "multi", lose_the_answer)
        assert await elector.elect() == (ElectedEpoch(1, 1) if is_carried_out else None)


class Queue:
    """Fair elections on one store, and the brokers that were called back."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self.turns: asyncio.Queue[int] = asyncio.Queue()

    def elector(self, broker_id: int) -> FairControllerElection:
        return FairControllerElection(
            self._store, broker_id, ManualClock(), lambda: self.turns.put_nowait(broker_id)
        )


async def test_only_the_next_broker_in_the_queue_is_woken(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        queue = Queue(store)
        electors = [queue.elector(broker_id) for broker_id in (1, 2, 3)]
        outcomes = [await elector.elect() for elector in electors]
        assert outcomes == [ElectedEpoch(1, 1), None, None]
        assert len(await store.children(ControllerCandidateZnode.PARENT)) == 3
        won = outcomes[0]
        assert won is not None
        await electors[0].resign(won)
        assert await asyncio.wait_for(queue.turns.get(), 5) == 2
        assert await electors[1].elect() == ElectedEpoch(2, 2)
        # The broker that resigned is at the end of the queue now.
        assert await electors[0].elect() is None
        await store.exists("/")
        assert queue.turns.empty()
        for elector in electors:
            elector.close()


async def test_first_in_the_queue_waits_for_a_controller_that_did_not_queue(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        racing = FirstControllerElection(store, 9, ManualClock())
        waiting = Queue(store).elector(1)
        won = await racing.elect()
        assert won is not None
        assert await waiting.elect() is None
        await racing.resign(won)
        assert await waiting.elect() == ElectedEpoch(2, 2)
