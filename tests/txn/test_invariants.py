"""Invariants of the coordinator under random requests, failures and restarts.

1. The log contains, for each transactional id, only valid state transitions.
2. A producer id belongs to one transactional id, and its epochs never decrease.
3. CompleteCommit and CompleteAbort are written only after every partition of the transaction has a
   marker with the same outcome and producer, written after the decision.
4. A prepared transaction is completed once failures stop.
5. After a restart, the coordinator knows everything that was acknowledged before.
"""

import asyncio
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.txn.coordinator import TransactionFilter
from broker.txn.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    IDLE,
    ONGOING,
    PREPARE_COMMIT,
    VALID_PREVIOUS_STATES,
)
from broker.txn.transaction import TransactionMetadata
from tests.txn.support import Bench, Stored, Trace, Written, settle

IDS = ["a", "b"]
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]


class Step(NamedTuple):
    """One event; `settles`: all tasks finish before the next one."""

    what: str
    transactional_id: str
    client: int
    partition: TopicPartition
    code: ErrorCode
    settles: bool


WEIGHTED = (
    ["init"] * 3
    + ["add"] * 5
    + ["commit"] * 4
    + ["abort", "refuse_markers"] * 2
    + ["bump", "restart", "elect", "fail_append", "silence", "answer"]
    + ["hold", "release", "time_out", "expire"]
)

steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(WEIGHTED),
        st.sampled_from(IDS),
        st.integers(0, 1),
        st.sampled_from(PARTITIONS),
        st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT]),
        st.booleans(),
    ),
    max_size=40,
)


class World:
    """Two clients for each of two transactional ids, and a coordinator with injected failures."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.identities: dict[tuple[str, int], ProducerIdAndEpoch] = {}
        self.requests: list[asyncio.Task[None]] = []

    async def take(self, step: Step) -> None:
        if step.what in ("init", "bump", "add", "commit", "abort"):
            self.requests.append(asyncio.create_task(self.request(step)))
        else:
            await getattr(self, step.what)(step)
        if step.settles:
            await settle()

    async def request(self, step: Step) -> None:
        coordinator = self.bench.coordinator
        name, who = step.transactional_id, (step.transactional_id, step.client)
        identity = self.identities.get(who, ProducerIdAndEpoch(0, 0))
        try:
            if step.what == "init":
                self.identities[who] = await coordinator.init_producer_id(name, 60_000)
            elif step.what == "bump":
                self.identities[who] = await coordinator.init_producer_id(name, 60_000, identity)
            elif step.what == "add":
                await coordinator.add_partitions(name, identity, [step.partition])
            else:
                is_commit = step.what == "commit"
                await coordinator.end_transaction(name, identity, commit=is_commit)
        except ApiError as error:
            assert error.code != ErrorCode.UNKNOWN_SERVER_ERROR
        except asyncio.CancelledError:
            pass  # its coordinator was stopped

    async def restart(self, step: Step) -> None:
        await self.bench.restart()

    async def elect(self, step: Step) -> None:
        await self.bench.elect()

    async def fail_append(self, step: Step) -> None:
        self.bench.topic.failures.append(step.code)

    async def refuse_markers(self, step: Step) -> None:
        for partition in PARTITIONS:
            self.bench.markers.errors[partition] = [step.code]

    async def silence(self, step: Step) -> None:
        self.bench.markers.open.clear()

    async def answer(self, step: Step) -> None:
        self.bench.markers.open.set()

    async def hold(self, step: Step) -> None:
        self.bench.topic.acks.clear()

    async def release(self, step: Step) -> None:
        self.bench.topic.acks.set()

    async def time_out(self, step: Step) -> None:
        self.bench.clock.advance(60_001)
        self.requests.append(
            asyncio.create_task(self.bench.coordinator.abort_timed_out_transactions())
        )

    async def expire(self, step: Step) -> None:
        self.bench.clock.advance(self.bench.config.transactional_id_expiration_ms)
        self.requests.append(
            asyncio.create_task(self.bench.coordinator.remove_expired_transactional_ids())
        )

    async def come_to_rest(self) -> None:
        """End all failures, and let all tasks finish."""
        self.bench.topic.failures.clear()
        self.bench.topic.acks.set()
        self.bench.markers.open.set()
        await asyncio.gather(*self.requests, return_exceptions=True)
        await settle()

    def known(self) -> dict[str, TransactionMetadata]:
        listed = self.bench.coordinator.list_transactions(TransactionFilter())
        return {name: self.bench.coordinator.describe_transaction(name) for name, _, _ in listed}


def check_states(trace: Trace) -> None:
    """Invariant 1. A tombstone follows an idle state; any state may follow it as if new."""
    last: dict[str, TransactionMetadata | None] = {}
    for event in trace:
        if isinstance(event, Stored):
            name, metadata = event
            before = last.get(name)
            state_before = before.state if before else EMPTY
            if metadata is None:
                assert state_before in IDLE
            else:
                assert state_before in VALID_PREVIOUS_STATES[metadata.state]
            last[name] = metadata


def check_epochs(trace: Trace) -> None:
    """Invariant 2."""
    owners: dict[int, str] = {}
    epochs: dict[int, int] = {}
    for event in trace:
        if isinstance(event, Stored) and event.metadata is not None:
            known = event.metadata
            assert owners.setdefault(known.producer_id, event.transactional_id) == (
                event.transactional_id
            )
            assert epochs.get(known.producer_id, 0) <= known.producer_epoch
            epochs[known.producer_id] = known.producer_epoch


def check_markers(trace: Trace) -> None:
    """Invariant 3."""
    decided: dict[str, TransactionMetadata] = {}
    marked: dict[str, set[TopicPartition]] = {}
    for event in trace:
        if isinstance(event, Written):
            for name, decision in decided.items():
                producer = (decision.producer_id, decision.producer_epoch)
                if event.marker[:2] == producer:
                    assert event.marker.commit == (decision.state == PREPARE_COMMIT)
                    marked[name].add(event.partition)
        elif event.metadata is None:
            continue
        elif event.metadata.state in (COMPLETE_COMMIT, COMPLETE_ABORT):
            decision = decided.pop(event.transactional_id)
            assert marked.pop(event.transactional_id) == set(decision.partitions)
        elif event.metadata.state not in (EMPTY, ONGOING):
            decided[event.transactional_id] = event.metadata
            marked[event.transactional_id] = set()


async def live(what: list[Step]) -> None:
    world = World()
    await world.bench.start()
    for step in what:
        await world.take(step)
    await world.come_to_rest()
    known = world.known()
    assert all(metadata.state in {*IDLE, ONGOING} for metadata in known.values())  # invariant 4
    await world.bench.restart()
    await settle()
    for name, metadata in world.known().items():  # invariant 5
        stored = known.pop(name)
        assert metadata.state == stored.state
        assert set(metadata.partitions) == set(stored.partitions)  # stored by topic, in no order
        assert metadata.producer_id == stored.producer_id
        # A fenced epoch may not be stored; no producer has it.
        assert stored.producer_epoch - 1 <= metadata.producer_epoch <= stored.producer_epoch
    assert all(metadata.producer_epoch == -1 for metadata in known.values()), (
        "an acknowledged id is missing"
    )
    await world.bench.coordinator.stop()
    for check in (check_states, check_epochs, check_markers):
        check(world.bench.trace)


def step(what: str, transactional_id: str = "a", *, settles: bool = False) -> Step:
    return Step(what, transactional_id, 0, PARTITIONS[0], ErrorCode.REQUEST_TIMED_OUT, settles)


TOMBSTONE_WHILE_A_TRANSACTION_STARTS = [
    step("init", "b"),
    step("init", "a", settles=True),
    step("hold"),
    step("expire"),
    step("add", "b", settles=True),
    step("restart"),
    step("init", "b"),
]
TOMBSTONE_OF_A_FORMER_COORDINATOR = [
    step("init", "b"),
    step("init", "a", settles=True),
    step("hold"),
    step("expire", settles=True),
    step("restart"),
]


@settings(max_examples=150)
@given(steps)
@example(TOMBSTONE_WHILE_A_TRANSACTION_STARTS)
@example(TOMBSTONE_OF_A_FORMER_COORDINATOR)
def test_invariants_hold_under_random_events(what: list[Step]) -> None:
    asyncio.run(live(what))
