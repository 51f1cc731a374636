"""A steady load of records with acks=all that measures how long each acknowledgement takes."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tests.support.consumed import offset_of, partition_of

_PACE_S = 0.005
_FLUSH_S = 60
_SOME = 10


@dataclass
class AckLoad:
    """One record to each partition in turn, by an idempotent producer.

    Field `longest_wait_s`: from the call of produce to the acknowledgement, retries included.
    Field `acknowledged`: the offsets of each partition.
    """

    topic: str
    num_partitions: int
    longest_wait_s: float = 0.0
    acknowledged: dict[int, list[int]] = field(default_factory=dict)
    failed: list[KafkaError] = field(default_factory=list)
    count: int = 0

    def run(self, bootstrap_servers: str, is_over: threading.Event) -> None:
        """Produce until stopped, then wait for the acknowledgements."""
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 0,
            "log_level": 0,
            # As Java's clients. librdkafka waits up to 10 s before it connects again to a broker
            # that took some seconds to start, which would hide what the brokers do.
            "reconnect.backoff.max.ms": 1000,
        }
        producer = Producer(settings)
        number = 0
        while not is_over.is_set():
            self._send(producer, number % self.num_partitions)
            producer.poll(_PACE_S)
            number += 1
        assert producer.flush(_FLUSH_S) == 0

    def _send(self, producer: Producer, partition: int) -> None:
        began = time.monotonic()

        def answered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed.append(error)
                return
            self.count += 1
            self.longest_wait_s = max(self.longest_wait_s, time.monotonic() - began)
            self.acknowledged.setdefault(partition_of(message), []).append(offset_of(message))

        producer.produce(self.topic, b"x" * 100, partition=partition, on_delivery=answered)

    def take_longest_wait(self) -> float:
        """The longest wait since the last call."""
        longest_wait_s, self.longest_wait_s = self.longest_wait_s, 0.0
        return longest_wait_s

    def counts(self) -> list[int]:
        """By partition: how many records are acknowledged."""
        return [len(self.acknowledged.get(index, ())) for index in range(self.num_partitions)]

    def has_moved_since(self, before: list[int]) -> bool:
        """Whether every partition has acknowledged some more records than `before`.

        One partition is not enough: the producer may still wait before it connects again to the
        leader of another, a second and more after several refused connections.
        """
        pairs = zip(before, self.counts(), strict=True)
        return all(now >= then + _SOME for then, now in pairs)


@contextmanager
def ack_load(bootstrap_servers: str, topic: str, num_partitions: int) -> Iterator[AckLoad]:
    """Load a topic while the block runs."""
    load, is_over = AckLoad(topic, num_partitions), threading.Event()
    thread = threading.Thread(target=load.run, args=(bootstrap_servers, is_over))
    thread.start()
    try:
        yield load
    finally:
        is_over.set()
        thread.join()
