"""Produce and consume in an asyncio program, with aiokafka.

    python async_client.py localhost:9092 orders 100 at-least-once

Records with the same key go to the same partition, in order. `send_and_wait` of many records at
once is as fast as a batch: aiokafka collects them, and retries within request_timeout_ms. The
consumer commits by hand: after processing (at-least-once), or before it (at-most-once).
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord


async def main(servers: str, topic: str, count: int, guarantee: str) -> None:
    """Write `count` records and read them back."""
    await produce(servers, topic, count)
    print(f"{await consume(servers, topic, count, guarantee)} records read")


async def produce(servers: str, topic: str, count: int) -> None:
    """Write `count` records; raises KafkaError if one of them could not be written."""
    async with AIOKafkaProducer(
        bootstrap_servers=servers, acks="all", enable_idempotence=True, request_timeout_ms=30_000
    ) as producer:
        await asyncio.gather(
            *(
                producer.send_and_wait(
                    topic, f"order {number}".encode(), key=f"customer-{number % 10}".encode()
                )
                for number in range(count)
            )
        )


async def consume(servers: str, topic: str, count: int, guarantee: str) -> int:
    """Process `count` records as a member of a group; returns how many."""
    async with AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=f"{topic}-readers",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ) as consumer:
        read = 0
        while read < count:
            batches = await consumer.getmany(timeout_ms=1000)
            records = [record for batch in batches.values() for record in batch]
            if not records:
                continue
            if guarantee == "at-most-once":
                await consumer.commit()
                process(records)
            else:
                process(records)
                await consumer.commit()
            read += len(records)
    return read


def process(records: list[ConsumerRecord]) -> None:
    """Do the work; here, print the records."""
    for record in records:
        print(f"{record.topic}-{record.partition}@{record.offset} {record.value.decode()}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
