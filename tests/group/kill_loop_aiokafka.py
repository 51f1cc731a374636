"""The clients of `kill_loop_clients` with aiokafka, which is written in Python without librdkafka.

They are the oracle when brokers are killed: librdkafka itself can hang at a failover, see
`kill_loop`. A client that is wedged after an error is closed and built again, as the examples of
aiokafka's documentation do; none of them needs a new process.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from tests.group.kill_loop_clients import INPUT, OUTPUT

_STEP_TIMEOUT_S = 40


def report(what: str, detail: str = "") -> None:
    """Print one line for the parent process."""
    print(what, detail.replace("\n", " "), flush=True)


def _consumer(servers: str, group_id: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        INPUT,
        bootstrap_servers=servers,
        group_id=group_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=10_000,
        request_timeout_ms=10_000,
    )


async def feed(servers: str) -> None:
    """An idempotent producer that writes numbers to the input topic."""
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, enable_idempotence=True, request_timeout_ms=30_000
    )
    await producer.start()
    try:
        number = 0
        while True:
            await producer.send_and_wait(INPUT, b"%d" % number)
            report("commit")
            number += 1
            await asyncio.sleep(0.02)
    finally:
        await producer.stop()


async def read(servers: str) -> None:
    """A group member that commits what it has read."""
    consumer = _consumer(servers, "group")
    await consumer.start()
    try:
        while True:
            if await asyncio.wait_for(consumer.getmany(timeout_ms=200, max_records=50), 30):
                await asyncio.wait_for(consumer.commit(), _STEP_TIMEOUT_S)
                report("commit")
    finally:
        await consumer.stop()


async def transform(servers: str) -> None:
    """Copies input to output exactly once: offsets and records in one transaction."""
    consumer = _consumer(servers, "transformer")
    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        transactional_id="transformer",
        transaction_timeout_ms=10_000,
        request_timeout_ms=30_000,
    )
    await consumer.start()
    try:
        await producer.start()
        try:
            while True:
                await asyncio.wait_for(_transform_some(consumer, producer), _STEP_TIMEOUT_S)
        finally:
            await producer.stop()
    finally:
        await consumer.stop()


async def _transform_some(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer) -> None:
    found = await consumer.getmany(timeout_ms=200, max_records=20)
    if not found:
        return
    offsets: dict[TopicPartition, int] = {}
    async with producer.transaction():
        for name, records in found.items():
            for record in records:
                await producer.send(OUTPUT, record.value, partition=name.partition)
            offsets[name] = records[-1].offset + 1
        await producer.send_offsets_to_transaction(offsets, "transformer")
    report("commit")


async def repeat(role: Callable[[str], Awaitable[None]], servers: str) -> None:
    """Run a role for ever; after an error with new clients, from the committed offsets."""
    while True:
        try:
            await role(servers)
        except (KafkaError, TimeoutError, OSError) as error:
            report("error", f"{role.__name__}: {error!r}")
            await asyncio.sleep(0.5)


ROLES = {"feeder": feed, "member": read, "transformer": transform}

if __name__ == "__main__":
    asyncio.run(repeat(ROLES[sys.argv[1]], sys.argv[2]))
