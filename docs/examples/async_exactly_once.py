"""Read, process and write exactly once in an asyncio program, with aiokafka.

    python async_exactly_once.py localhost:9092 orders invoices invoicing worker-1 100

Results and the offsets of the records that they were made from are committed in one transaction;
leaving the `async with` by an exception aborts it. See exactly_once.py for what that guarantees.
The program ends after the given number of records.
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

BATCH = 20
"""Records per transaction."""


async def main(
    servers: str, source: str, target: str, group: str, transactional_id: str, count: int
) -> None:
    """Process `count` records from `source` to `target`."""
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id)
    done = 0
    async with consumer, producer:  # the start of the producer fences its predecessor
        while done < count:
            batches = await consumer.getmany(timeout_ms=1000, max_records=min(BATCH, count - done))
            if not batches:
                continue
            async with producer.transaction():
                for records in batches.values():
                    for record in records:
                        value = b"invoice for " + record.value
                        await producer.send(target, value, key=record.key)
                    done += len(records)
                ends = {place: records[-1].offset + 1 for place, records in batches.items()}
                await producer.send_offsets_to_transaction(ends, group)
    print(f"{done} records processed")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:6], int(sys.argv[6])))
