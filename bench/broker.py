"""One broker of ours beside one of Apache Kafka: rates, CPU and memory, by librdkafka."""

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.loads import Limits, Load, compare, loads
from bench.report import Comparison
from bench.servers import both_brokers


def run() -> Iterator[Comparison]:
    """Every load on both, in turns; then what is resident after all of it."""
    with both_brokers() as (ours, kafka):
        yield Comparison("memory idle", ours.resident_mb(), kafka.resident_mb(), "Kafka", "MB")
        yield Comparison("memory idle", ours.resident_mb(), 60, "limit", "MB", goal=1)
        limits = Limits(produce=1, produce_cpu=0.5, consume=1)
        # Many short rounds: a machine's pace drifts by more than the brokers differ.
        all_loads = loads(1_500_000, 400_000)
        client = LibrdkafkaClient()
        yield from compare(ours, kafka, client, all_loads, limits, rounds=11, reads=2)
        yield Comparison("memory after", ours.resident_mb(), kafka.resident_mb(), "Kafka", "MB")
        yield Comparison("memory after", ours.resident_mb(), 150, "limit", "MB", goal=1)


class LibrdkafkaClient:
    """As its defaults are, but idempotent with acks=all, as Java's producer is."""

    def produce(self, servers: str, topic: str, load: Load) -> float:
        """Part of LoadClient."""
        producer = Producer(
            {
                "bootstrap.servers": servers,
                "acks": load.acks,
                "enable.idempotence": load.acks == "all",
            }
        )
        payload = bytes(index % 251 for index in range(load.record_bytes))
        producer.produce(topic, payload)
        producer.flush(30)  # connected, and given its producer id, which it asks for in no hurry
        begin = time.perf_counter()
        for number in range(load.records):
            while True:
                try:
                    producer.produce(topic, payload)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1000 == 0:
                producer.poll(0)
        if left := producer.flush(60):
            raise RuntimeError(f"{left} records were not sent within a minute")
        return load.megabytes / (time.perf_counter() - begin)

    def consume(self, servers: str, topic: str, load: Load) -> float:
        """Part of LoadClient."""
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "bench",
                "enable.auto.commit": False,
                "fetch.queue.backoff.ms": 1,  # else it sleeps for a second when it has read ahead
            }
        )
        consumer.list_topics(topic, timeout=30)
        begin, received = time.perf_counter(), 0
        consumer.assign([TopicPartition(topic, index, 0) for index in range(load.partitions)])
        while received < load.records:
            if not (messages := consumer.consume(10_000, timeout=30)):
                raise RuntimeError(f"{load.records - received} records did not come")
            received += len(messages)
        rate = load.megabytes / (time.perf_counter() - begin)
        consumer.close()
        return rate
