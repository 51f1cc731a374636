"""Whatever is asked, whatever fails, in whatever order: what is written keeps these promises.

1. The log holds, for each transactional id, only states that may follow each other.
2. A producer id belongs to one transactional id, and its epochs never go back.
3. CompleteCommit and CompleteAbort are written only after every partition of the transaction has
   its marker: of that end, that producer, and not older than the decision.
4. A transaction that is neither open nor idle ends by itself, once nothing is in the way.
5. A coordinator that reads the log knows what the one before it had acknowledged.
"""

import asyncio
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
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
from broker.txn.transaction import ProducerIdAndEpoch, TransactionMetadata
from tests.txn.support import Bench, Stored, Trace, Written, settle

IDS = ["a", "b"]
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]


class Step(NamedTuple):
    """One thing that happens; `settles` is whether the world comes to rest before the next."""

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
    """Two clients for each of two transactional ids, and a coordinator that is not spared."""

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
            pass  # its coordinator died

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
        """Nothing is in the way any more."""
        self.bench.topic.failures.clear()
        self.bench.topic.acks.set()
        self.bench.markers.open.set()
        await asyncio.gather(*self.requests, return_exceptions=True)
        await settle()

    def known(self) -> dict[str, TransactionMetadata]:
        listed = self.bench.coordinator.list_transactions(TransactionFilter())
        return {name: self.bench.coordinator.describe_transaction(name) for name, _, _ in listed}


def check_states(trace: Trace) -> None:
    """Promise 1; a tombstone ends an idle one, after it everything begins anew."""
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
    """Promise 2."""
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
    """Promise 3."""
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
    assert all(metadata.state in {*IDLE, ONGOING} for metadata in known.values())  # promise 4
    await world.bench.restart()
    await settle()
    for name, metadata in world.known().items():  # promise 5
        stored = known.pop(name)
        assert metadata.state == stored.state
        assert metadata.partitions == stored.partitions
        assert metadata.producer_id == stored.producer_id
        # A fenced epoch may not have been stored yet: nobody was given it.
        assert stored.producer_epoch - 1 <= metadata.producer_epoch <= stored.producer_epoch
    assert all(metadata.producer_epoch == -1 for metadata in known.values()), "never given away"
    await world.bench.coordinator.stop()
    for check in (check_states, check_epochs, check_markers):
        check(world.bench.trace)


@settings(max_examples=150)
@given(steps)
def test_promises_hold_whatever_happens(what: list[Step]) -> None:
    asyncio.run(live(what))
