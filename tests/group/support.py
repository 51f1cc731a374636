"""A coordinator with a manual clock, over a log in memory."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.coordinator import GroupCoordinator
from broker.group.member import JoiningMember
from broker.group.offset_manager import VerifyTransaction
from broker.group.offsets import OffsetAndMetadata
from broker.model import TopicPartition
from broker.records.batch import Batch, iterate_batches
from broker.records.record import Record
from tests.support.batches import assign_offset_and_epoch

NUM_PARTITIONS = 4


class MemoryOffsetsTopic:
    """Partitions of the offsets topic, as bytes."""

    num_partitions = NUM_PARTITIONS

    def __init__(self) -> None:
        self.logs: dict[int, bytearray] = defaultdict(bytearray)
        self.next_offset: dict[int, int] = defaultdict(int)
        self.fail_next: ErrorCode | None = None
        self.break_next = False
        """Whether the next append fails with an unexpected error."""
        self.acks = asyncio.Event()
        """Cleared: appends are in the log, but not acknowledged yet."""
        self.acks.set()
        self.fail_acks: ErrorCode | None = None
        """The error of appends that are in the log but not acknowledged."""
        self.break_reads = False

    async def append(self, partition: int, batch: bytes) -> int:
        if self.break_next:
            self.break_next = False
            raise OSError("broken")
        if self.fail_next is not None:
            code, self.fail_next = self.fail_next, None
            raise ApiError(code)
        data, base_offset = bytearray(batch), self.next_offset[partition]
        assign_offset_and_epoch(data, 0, base_offset, 0)
        self.logs[partition] += data
        self.next_offset[partition] = next(iterate_batches(data)).header.next_offset
        await self.acks.wait()
        if self.fail_acks is not None:
            raise ApiError(self.fail_acks)
        return base_offset

    def read(self, partition: int) -> Iterable[Batch]:
        if self.break_reads:
            raise OSError("broken")
        return iterate_batches(bytes(self.logs[partition]))

    def records(self) -> list[Record]:
        """Every record of every partition."""
        logs = [self.logs[partition] for partition in sorted(self.logs)]
        return [
            record for log in logs for batch in iterate_batches(log) for record in batch.records()
        ]


@dataclass(eq=False)
class ManualTimer:
    due_ms: int
    callback: Callable[[], None]
    timers: list["ManualTimer"] = field(repr=False)

    def cancel(self) -> None:
        if self in self.timers:
            self.timers.remove(self)


class ManualTimers:
    """call_later for a manual clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.timers: list[ManualTimer] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self.clock.now_ms() + round(delay_s * 1000), callback, self.timers)
        self.timers.append(timer)
        return timer

    async def advance(self, ms: int) -> None:
        """Advance the clock, and run every timer that is due."""
        end_ms = self.clock.now_ms() + ms
        while due := [timer for timer in self.timers if timer.due_ms <= end_ms]:
            first = min(due, key=lambda timer: timer.due_ms)
            first.cancel()
            self.clock.advance(max(first.due_ms - self.clock.now_ms(), 0))
            first.callback()
            await settle()
        self.clock.advance(end_ms - self.clock.now_ms())


async def settle() -> None:
    """Let all tasks finish; none of them waits for anything external."""
    for _ in range(5):
        await asyncio.sleep(0)


class Bench:
    """A coordinator that owns all partitions, with a manual clock and a log in memory."""

    def __init__(
        self,
        config: GroupConfig | None = None,
        topic: MemoryOffsetsTopic | None = None,
        verify_transaction: VerifyTransaction | None = None,
    ) -> None:
        self.clock = ManualClock(now_ms=1_700_000_000_000)
        self.timers = ManualTimers(self.clock)
        self.topic = topic or MemoryOffsetsTopic()
        self.coordinator = GroupCoordinator(
            config or GroupConfig(),
            self.topic,
            self.clock,
            verify_transaction,
            self.timers.call_later,
        )
        self.offsets = self.coordinator.offsets

    async def start(self) -> None:
        self.coordinator.start()
        for partition in range(NUM_PARTITIONS):
            await self.coordinator.load(partition, 0)

    async def advance(self, ms: int) -> None:
        await self.timers.advance(ms)


@asynccontextmanager
async def running(**options: Any) -> Any:
    """A started Bench, stopped at the end."""
    bench = Bench(**options)
    await bench.start()
    try:
        yield bench
    finally:
        await bench.coordinator.stop()


def joining(**changes: Any) -> JoiningMember:
    """A JoinGroup request of a consumer, version 3 or below."""
    values: dict[str, Any] = {
        "member_id": "",
        "group_instance_id": None,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "rebalance_timeout_ms": 60_000,
        "session_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": (("range", b""),),
    }
    return JoiningMember(**(values | changes))


def commits(*offsets: tuple[str, int, int], timestamp_ms: int = 0) -> dict[Any, OffsetAndMetadata]:
    """(topic, partition, offset), …"""
    return {
        TopicPartition(topic, partition): OffsetAndMetadata(offset, "", timestamp_ms)
        for topic, partition, offset in offsets
    }


def run(work: Any) -> Any:
    """Run a test's coroutine."""
    return asyncio.run(work)
