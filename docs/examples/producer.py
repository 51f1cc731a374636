"""Produce records with keys, and know of each whether it was written.

    python producer.py localhost:9092 orders 100

Records with the same key go to the same partition, in order. With acks=all a record is acknowledged
when all in-sync replicas have it. The idempotent producer retries without writing a record twice
and without changing the order. A record that could not be written within delivery.timeout.ms is
reported, and the program ends with status 1.
"""

import sys

from confluent_kafka import KafkaError, Message, Producer


def main(servers: str, topic: str, count: int) -> int:
    """Write `count` records; returns how many failed."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        """Called once per record, from poll() and flush()."""
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": servers,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": 30_000,
            "linger.ms": 5,  # wait this long for more records: larger batches, fewer requests
            "compression.type": "gzip",
        }
    )
    for number in range(count):
        customer = f"customer-{number % 10}"
        while True:
            try:
                producer.produce(
                    topic, key=customer, value=f"order {number}", on_delivery=delivered
                )
                break
            except BufferError:  # the queue is full: wait until some are delivered
                producer.poll(0.5)
        producer.poll(0)  # runs the callbacks of records that were acknowledged
    undelivered = producer.flush(60)
    for error in failed[:3]:
        print(f"not written: {error}", file=sys.stderr)
    print(f"{count - len(failed) - undelivered} of {count} records written")
    return len(failed) + undelivered


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1], sys.argv[2], int(sys.argv[3])) else 0)
