"""Write numbered records, and read them back: kctl verify and Kafka's verifiable clients."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from broker.model import TopicPartition
from kctl.streaming.config import Properties, refused
from kctl.streaming.reading import consume, open_consumer, place_of
from kctl.streaming.waiting import Waiting

_POLL_S = 0.1


@dataclass(frozen=True)
class NumberedLoad:
    """The records to write."""

    topic: str
    records: int | None
    """None: until interrupted."""
    per_s: float | None
    prefix: str
    keys: int | None
    """Keys 0 to `keys` - 1 in turn; None for records without a key."""
    create_time_ms: int | None
    """The timestamp of the first record; each one is a millisecond later. None for now."""

    def message(self, number: int) -> dict[str, Any]:
        """The record of a number, as librdkafka's `produce` takes it."""
        value = f"{self.prefix}.{number}" if self.prefix else str(number)
        fields: dict[str, Any] = {"value": value.encode()}
        if self.keys:
            fields["key"] = str(number % self.keys).encode()
        if self.create_time_ms is not None:
            fields["timestamp"] = self.create_time_ms + number
        return fields


@dataclass
class NumberedProducer:
    """Sends a load; `delivered` is called with the outcome of every record."""

    properties: Properties
    load: NumberedLoad
    delivered: Callable[[KafkaError | None, Message], None]
    waiting: Waiting
    sent: int = 0
    seconds: float = field(default=0.0, init=False)

    def run(self, interrupted: Event) -> None:
        """Send until the load is done or `interrupted`; then wait for all outcomes."""
        try:
            producer = Producer({"partitioner": "murmur2_random", **self.properties})
        except (KafkaException, ValueError) as error:
            raise refused(error, "cannot start a producer") from error
        started = time.monotonic()
        while not interrupted.is_set() and self.sent != self.load.records:
            self._send(producer, interrupted)
            if self.load.per_s:
                _pace(producer, started + self.sent / self.load.per_s, interrupted)
        while outstanding := producer.flush(_POLL_S):
            self.waiting(outstanding)
        self.seconds = time.monotonic() - started

    def _send(self, producer: Producer, interrupted: Event) -> None:
        message = self.load.message(self.sent)
        while not interrupted.is_set():
            try:
                producer.produce(self.load.topic, on_delivery=self.delivered, **message)
            except BufferError:
                producer.poll(_POLL_S)
                self.waiting(len(producer))
                continue
            except KafkaException as error:
                raise refused(error, f"a record for {self.load.topic} was refused") from error
            self.sent += 1
            producer.poll(0)
            return


def _pace(producer: Producer, due: float, interrupted: Event) -> None:
    while (left := due - time.monotonic()) > 0 and not interrupted.is_set():
        producer.poll(min(left, _POLL_S))


class Observer(Protocol):
    """Is notified of what happens to a consumer of a group."""

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions were assigned."""
        ...

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions were revoked."""
        ...

    def consumed(self, messages: Sequence[Message]) -> None:
        """Records were read; at least one."""
        ...

    def committed(self, offsets: Mapping[TopicPartition, int], error: str | None) -> None:
        """Offsets were committed, or could not be."""
        ...


def consume_in_group(
    properties: Properties,
    topic: str,
    limit: int | None,
    observer: Observer,
    interrupted: Event,
) -> int:
    """Read as a member of a group and commit after each batch; how many records were read."""
    with open_consumer(properties) as consumer:
        consumer.subscribe(
            [topic],
            on_assign=lambda _, found: observer.assigned(_places(found)),
            on_revoke=lambda _, found: observer.revoked(_places(found)),
        )
        records = 0
        while not interrupted.is_set() and records != limit:
            messages = consume(consumer, None if limit is None else limit - records)
            if messages:
                records += len(messages)
                observer.consumed(messages)
                _commit(consumer, messages, observer)
        return records


def _commit(consumer: Consumer, messages: Sequence[Message], observer: Observer) -> None:
    offsets = {place_of(message): (message.offset() or 0) + 1 for message in messages}
    wanted = [confluent_kafka.TopicPartition(*place, offset) for place, offset in offsets.items()]
    try:
        consumer.commit(offsets=wanted, asynchronous=False)
    except KafkaException as error:
        observer.committed(offsets, str(error.args[0]))
    else:
        observer.committed(offsets, None)


def _places(found: Sequence[confluent_kafka.TopicPartition]) -> list[TopicPartition]:
    return sorted(TopicPartition(one.topic, one.partition) for one in found)
