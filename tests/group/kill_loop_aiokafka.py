"""The clients of `kill_loop_clients` with aiokafka, which is written in Python without librdkafka.

They are the oracle when brokers are killed: librdkafka itself can hang at a failover, see
`kill_loop`. aiokafka 0.14 has its own weakness: a connection that breaks during FindCoordinator
ends the task that sends ("Unexpected error during batch delivery"), and even `stop` waits for ever
then. So a client that fails, or reads nothing for a while although records are written, is closed
within a bounded time and built again in the same process.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Awaitable, Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from tests.group.kill_loop_clients import INPUT, OUTPUT

_STEP_TIMEOUT_S = 15
_STOP_TIMEOUT_S = 5


def report(what: str, detail: str = "") -> None:
    """Print one line for the parent process."""
    print(what, detail.replace("\n", " "), flush=True)


async def stop(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
    """Close a client, unless that hangs."""
    with contextlib.suppress(TimeoutError, KafkaError):
        await asyncio.wait_for(client.stop(), _STOP_TIMEOUT_S)


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


Records = dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]]


async def _poll(consumer: AIOKafkaConsumer, max_records: int) -> Records:
    """The next records; TimeoutError if there are none, because the feeder writes all the time."""
    found: Records = {}
    async with asyncio.timeout(_STEP_TIMEOUT_S):
        while not found:
            found = await consumer.getmany(timeout_ms=200, max_records=max_records)
    return found


async def feed(servers: str) -> None:
    """An idempotent producer that writes numbers to the input topic."""
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, enable_idempotence=True, request_timeout_ms=30_000
    )
    await producer.start()
    try:
        number = 0
        while True:
            await asyncio.wait_for(producer.send_and_wait(INPUT, b"%d" % number), _STEP_TIMEOUT_S)
            report("commit")
            number += 1
            await asyncio.sleep(0.02)
    finally:
        await stop(producer)


async def read(servers: str) -> None:
    """A group member that commits what it has read."""
    consumer = _consumer(servers, "group")
    await consumer.start()
    try:
        while True:
            await _poll(consumer, 50)
            await asyncio.wait_for(consumer.commit(), _STEP_TIMEOUT_S)
            report("commit")
    finally:
        await stop(consumer)


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
                await asyncio.wait_for(_transform_some(consumer, producer), 2 * _STEP_TIMEOUT_S)
        finally:
            await stop(producer)
    finally:
        await stop(consumer)


async def _transform_some(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer) -> None:
    found = await _poll(consumer, 20)
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
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.WARNING)
    asyncio.run(repeat(ROLES[sys.argv[1]], sys.argv[2]))
