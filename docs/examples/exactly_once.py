"""Read, process and write exactly once, with transactions.

    python exactly_once.py localhost:9092 orders invoices invoicing worker-1 100

Results and the offsets of the records that they were made from are committed in one transaction:
either both are visible or neither is. A process that crashes is replaced by another one with the
same transactional id; init_transactions() aborts what the old one left open and fences it, so that
it cannot write any more if it is not dead after all. Readers of the results must use
isolation.level=read_committed, which is librdkafka's default.

The program ends after the given number of records.
"""

import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer

BATCH = 20
"""Records per transaction: larger ones cost less, smaller ones are visible sooner."""


def main(
    servers: str, source: str, target: str, group: str, transactional_id: str, count: int
) -> None:
    """Process `count` records from `source` to `target`."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
    producer.init_transactions(30)
    consumer.subscribe([source])
    try:
        done = 0
        while done < count:
            messages = consumer.consume(min(BATCH, count - done), timeout=1.0)
            if messages:
                _process(messages, target, consumer, producer)
                done += len(messages)
        print(f"{done} records processed")
    finally:
        consumer.close()


def _process(messages: list[Message], target: str, consumer: Consumer, producer: Producer) -> None:
    """One transaction: the results of `messages`, and the offsets after them."""
    producer.begin_transaction()
    try:
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            result = b"invoice for " + (message.value() or b"")
            producer.produce(target, key=message.key(), value=result)
        positions = consumer.position(consumer.assignment())
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(positions, metadata, 30)
        producer.commit_transaction(30)
    except KafkaException:
        # What was read is read again: by this process after a restart, or by its successor.
        producer.abort_transaction(30)
        raise


if __name__ == "__main__":
    main(*sys.argv[1:6], int(sys.argv[6]))
