"""Consume in a group with manual commits: at least once, or at most once.

    python consumer_group.py localhost:9092 orders billing at-least-once 100

The partitions of the topic are shared among all processes of the group. The only difference between
the two guarantees is when the offset is committed:

    at-least-once   process, then commit: after a crash the last records are processed again
    at-most-once    commit, then process: after a crash the last records are not processed

The program ends after the given number of records.
"""

import sys

from confluent_kafka import Consumer, KafkaException, Message


def main(servers: str, topic: str, group: str, guarantee: str, count: int) -> None:
    """Process `count` records of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",  # where a group without offsets begins
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    consumer.subscribe([topic])
    try:
        processed = 0
        while processed < count:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            if guarantee == "at-most-once":
                consumer.commit(message=message, asynchronous=False)
                process(message)
            else:
                process(message)
                consumer.commit(message=message, asynchronous=False)
            processed += 1
    finally:
        consumer.close()  # leaves the group: others take over its partitions at once


def process(message: Message) -> None:
    """Do the work of one record; here, print it."""
    key = (message.key() or b"").decode()
    value = (message.value() or b"").decode()
    print(f"{message.topic()}-{message.partition()}@{message.offset()} {key}: {value}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
