"""A coordinator over a log in memory, with a manual clock and injected failures."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from broker.clock import ManualClock
from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.model import TopicPartition
from broker.records.batch import Batch, iterate_batches
from broker.txn.config import TxnConfig
from broker.txn.coordinator import TransactionCoordinator
from broker.txn.records import read_key, read_value
from broker.txn.states import TransactionState
from broker.txn.storage import ProducerIdBlock, TxnMarker
from broker.txn.transaction import TransactionMetadata
from tests.support.batches import assign_offset_and_epoch

NUM_PARTITIONS = 3
START_MS = 1_700_000_000_000


class Stored(NamedTuple):
    """A record of the transaction log; no metadata is a tombstone."""

    transactional_id: str
    metadata: TransactionMetadata | None


class Written(NamedTuple):
    """A marker in a partition."""

    marker: TxnMarker
    partition: TopicPartition


Trace = list[Stored | Written]
"""What was appended, in order."""


class MemoryTransactionTopic:
    """Partitions of the transaction topic, as bytes."""

    num_partitions = NUM_PARTITIONS

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.logs: dict[int, bytearray] = defaultdict(bytearray)
        self.next_offset: dict[int, int] = defaultdict(int)
        self.failures: list[ErrorCode] = []
        """Errors of the next appends, which then append nothing."""
        self.acks = asyncio.Event()
        """Cleared: appends are in the log, but not acknowledged yet."""
        self.acks.set()
        self._more = asyncio.Event()

    async def append(self, partition: int, batch: bytes) -> int:
        if self.failures:
            raise ApiError(self.failures.pop(0))
        data, base_offset = bytearray(batch), self.next_offset[partition]
        assign_offset_and_epoch(data, 0, base_offset, 0)
        self.logs[partition] += data
        (appended,) = iterate_batches(data)
        self.next_offset[partition] = appended.header.next_offset
        with suppress(CorruptRecord):  # some tests append corrupt records
            self.trace += stored([appended])
        self._more.set()
        await self.acks.wait()
        return base_offset

    async def appended(self, transactional_id: str, state: TransactionState | None) -> None:
        """Wait until this is the last stored state; None is a tombstone."""
        async with asyncio.timeout(5):
            while self._last(transactional_id) != state:
                self._more.clear()
                await self._more.wait()

    def _last(self, transactional_id: str) -> TransactionState | None:
        known = [e for e in self.trace if isinstance(e, Stored) and e[0] == transactional_id]
        return known[-1].metadata.state if known[-1].metadata else None

    def read(self, partition: int) -> Iterable[Batch]:
        return iterate_batches(bytes(self.logs[partition]))


def stored(batches: Iterable[Batch]) -> list[Stored]:
    """The records of batches, decoded as by the coordinator."""
    records = [record for batch in batches for record in batch.records()]
    return [
        Stored(
            read_key(record.key) or "", None if record.value is None else read_value(record.value)
        )
        for record in records
    ]


class MemoryMarkers:
    """Partitions that accept markers, unless an error is injected."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.errors: dict[TopicPartition, list[ErrorCode]] = defaultdict(list)
        """Errors of the next markers by partition; those markers are not written."""
        self.deleted: set[TopicPartition] = set()
        self.open = asyncio.Event()
        """Cleared: leaders do not answer."""
        self.open.set()

    def has_partition(self, partition: TopicPartition) -> bool:
        return partition not in self.deleted

    async def write_markers(
        self, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        await self.open.wait()
        return {partition: self._write(marker, partition) for partition in partitions}

    def _write(self, marker: TxnMarker, partition: TopicPartition) -> ErrorCode:
        if self.errors[partition]:
            return self.errors[partition].pop(0)
        self.trace.append(Written(marker, partition))
        return ErrorCode.NONE


class MemoryBlocks:
    """Blocks of ten producer ids."""

    def __init__(self) -> None:
        self.allocated = 0

    async def allocate(self) -> ProducerIdBlock:
        await asyncio.sleep(0)
        first = 10 * self.allocated
        self.allocated += 1
        return ProducerIdBlock(first, first + 9)


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


class Bench:
    """A coordinator that owns all partitions."""

    def __init__(self, config: TxnConfig | None = None) -> None:
        self.config = config or TxnConfig()
        self.clock = ManualClock(START_MS)
        self.trace: Trace = []
        self.topic = MemoryTransactionTopic(self.trace)
        self.markers = MemoryMarkers(self.trace)
        self.blocks = MemoryBlocks()
        self.epoch = 0
        self.coordinator = self.new_coordinator()

    def new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            self.config, self.topic, self.markers, self.blocks, self.clock, no_sleep
        )

    async def start(self) -> None:
        """Start, and lead every partition."""
        self.coordinator.start()
        await self.elect()

    async def elect(self) -> None:
        """Lead every partition, in the next epoch."""
        self.epoch += 1
        for partition in range(NUM_PARTITIONS):
            await self.coordinator.on_election(partition, self.epoch)

    async def restart(self) -> None:
        """Replace the coordinator by a new one that loads the log, as after a crash."""
        await self.coordinator.stop()
        self.coordinator = self.new_coordinator()
        await self.start()


@asynccontextmanager
async def running(config: TxnConfig | None = None) -> AsyncIterator[Bench]:
    """A Bench with loaded partitions, stopped at the end."""
    bench = Bench(config)
    await bench.start()
    try:
        yield bench
    finally:
        await bench.coordinator.stop()


async def settle() -> None:
    """Let all tasks finish; none of them waits for anything external."""
    for _ in range(20):
        await asyncio.sleep(0)
