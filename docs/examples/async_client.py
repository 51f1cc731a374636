"""Produce and consume in an asyncio program, with aiokafka.

    python async_client.py localhost:9092 orders 100

`send_and_wait` of many records at once is as fast as a batch: aiokafka collects them. The consumer
commits the offsets of what it has processed before it ends.
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def main(servers: str, topic: str, count: int) -> None:
    """Write `count` records and read them back."""
    async with AIOKafkaProducer(
        bootstrap_servers=servers, acks="all", enable_idempotence=True
    ) as producer:
        await asyncio.gather(
            *(
                producer.send_and_wait(topic, f"order {number}".encode(), key=b"customer-1")
                for number in range(count)
            )
        )
    async with AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=f"{topic}-readers",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ) as consumer:
        read = 0
        while read < count:
            records = await consumer.getmany(timeout_ms=1000)
            for batch in records.values():
                read += len(batch)
            if records:
                await consumer.commit()
        print(f"{read} records read")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
