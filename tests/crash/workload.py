"""Clients that keep running while brokers are killed, and record what was acknowledged."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.consumed import offset_of, partition_of, value_of

PARTITIONS = 3
TIMEOUT_S = 60
PACE_S = float(os.environ.get("CHAOS_PACE_MS", "0.5")) / 1000
"""Pause between two records, so that the load outlasts the kills and does not fill the disk.
Long runs need a longer one: the clients keep every record in memory to compare it at the end."""

IMPATIENT = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
}

Log = list[list[tuple[int, bytes]]]
"""By partition: offset and value of every record."""


def create_topics(servers: str, *names: str, replication_factor: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [NewTopic(name, PARTITIONS, replication_factor) for name in names]
    for made in admin.create_topics(wanted).values():
        made.result(TIMEOUT_S)


class Work:
    """A thread that repeats `step` until it is stopped."""

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: Exception | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def give_up(self) -> None:
        """Tell the thread to end, without waiting for it."""
        self._is_over.set()

    def stop(self) -> None:
        """Stop the thread and wait for it; raises the exception it failed with."""
        self._is_over.set()
        self._thread.join(2 * TIMEOUT_S)
        assert not self._thread.is_alive(), f"{type(self).__name__} does not end"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self.step()
            self.finish()
        except Exception as failure:  # noqa: BLE001  # raised again by stop
            self.failure = failure

    def step(self) -> None:
        """Run one iteration."""
        raise NotImplementedError

    def finish(self) -> None:
        """Release resources; called after the last step."""


class Sending(Work):
    """Produces increasing numbers to all partitions; `promised` holds what was acknowledged."""

    def __init__(self, topic: str) -> None:
        super().__init__()
        self.topic = topic
        self.promised: dict[bytes, tuple[int, int | None]] = {}
        """Partition and offset by value. The offset is None if librdkafka lost the response and
        inferred from that to a later batch that this one is stored."""
        self.refused: list[object] = []
        self.num_sent = 0
        self.longest_silence_s = 0.0
        """The longest time without an acknowledgement."""
        self._last_promise_s = time.monotonic()

    def step(self) -> None:
        """Send one record."""
        self.send(b"%d" % self.num_sent, self.num_sent % PARTITIONS)
        self.num_sent += 1
        time.sleep(PACE_S)

    def send(self, value: bytes, partition: int) -> None:
        """Pass one record to the client."""
        raise NotImplementedError

    def promise(self, value: bytes, partition: int, offset: int | None) -> None:
        """Record that the broker has acknowledged it."""
        self.promised[value] = (partition, offset)
        now_s = time.monotonic()
        self.longest_silence_s = max(self.longest_silence_s, now_s - self._last_promise_s)
        self._last_promise_s = now_s


class LibrdkafkaSending(Sending):
    """Produces with librdkafka."""

    def __init__(self, servers: str, topic: str, settings: dict[str, Any]) -> None:
        super().__init__(topic)
        common = {"bootstrap.servers": servers, "linger.ms": 2, **IMPATIENT}
        self._producer = Producer(common | settings)

    def send(self, value: bytes, partition: int) -> None:
        """Pass one record to the client and run the callbacks of earlier ones."""
        self._producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.refused.append(error)
        else:
            self.promise(message.value(), message.partition(), message.offset())

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        assert self._producer.flush(TIMEOUT_S) == 0


class Transacting(Work):
    """Transactions of one record per partition; every third is aborted."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__()
        self.topic = topic
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.unknown: set[int] = set()
        """Transactions of unknown outcome: either all of their records are stored, or none."""
        self._settings = {
            "bootstrap.servers": servers,
            "transactional.id": topic,
            "linger.ms": 0,
            **IMPATIENT,
        }
        self._numbers = itertools.count()
        self._producer = self._new_producer()

    def _new_producer(self) -> Producer:
        producer = Producer(self._settings)
        _patiently(lambda: producer.init_transactions(TIMEOUT_S))
        return producer

    def step(self) -> None:
        """Run one transaction."""
        number = next(self._numbers)
        try:
            self._producer.begin_transaction()
            for index in range(PARTITIONS):
                self._producer.produce(self.topic, b"%d" % number, partition=index)
            if number % 3:
                _patiently(lambda: self._producer.commit_transaction(TIMEOUT_S))
                self.committed.add(number)
            else:
                self._abort(number)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._abort(number)
            else:
                self.unknown.add(number)
                self._producer = self._new_producer()
        time.sleep(PARTITIONS * PACE_S)

    def _abort(self, number: int) -> None:
        _patiently(lambda: self._producer.abort_transaction(TIMEOUT_S))
        self.aborted.add(number)


def _patiently(call: Callable[[], object]) -> None:
    """Repeat a call while librdkafka reports a retriable error."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            call()
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        else:
            return


class Following(Work):
    """A member of a group that reads a topic, commits, and records what was acknowledged."""

    def __init__(self, servers: str, topic: str, isolation_level: str = "read_uncommitted") -> None:
        super().__init__()
        self.topic = topic
        self.group_id = topic
        self.isolation_level = isolation_level
        self.read: dict[tuple[int, int], bytes] = {}
        """Value by partition and offset."""
        self.changed: list[tuple[int, int]] = []
        """Partitions and offsets where a second read returned another value."""
        self.committed: dict[int, int] = {}
        """Offset by partition. Invariant: acknowledged by the coordinator."""
        self.num_commits = 0
        self.went_back: list[tuple[int, int]] = []
        """Partitions and offsets that were read again although they were committed."""
        settings = {
            "bootstrap.servers": servers,
            "group.id": self.group_id,
            "isolation.level": isolation_level,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **IMPATIENT,
        }
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])

    def step(self) -> None:
        """Read some records and commit them."""
        positions: dict[int, int] = {}
        for message in self._consumer.consume(100, 0.1):
            if message.error() is None:
                partition, offset = partition_of(message), offset_of(message)
                self._take(partition, offset, value_of(message))
                positions[partition] = offset + 1
        offsets = [TopicPartition(self.topic, *position) for position in positions.items()]
        if offsets:
            self._commit(offsets)

    def _take(self, partition: int, offset: int, value: bytes) -> None:
        if self.read.setdefault((partition, offset), value) != value:
            self.changed.append((partition, offset))
        if offset < self.committed.get(partition, 0):
            self.went_back.append((partition, offset))

    def _commit(self, offsets: list[TopicPartition]) -> None:
        try:
            done = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return  # the commit was not acknowledged, so the records are read again
        self.committed |= {each.partition: each.offset for each in done or [] if not each.error}
        self.num_commits += 1

    def finish(self) -> None:
        """Leave the group."""
        self._consumer.close()


def read_log(servers: str, topic: str, isolation_level: str = "read_uncommitted") -> Log:
    """Everything that a reader can see, by partition."""
    log: Log = [[] for _ in range(PARTITIONS)]
    for partition, offset, value in _read(servers, topic, isolation_level):
        log[partition].append((offset, value))
    return log


def _read(servers: str, topic: str, isolation_level: str) -> Iterator[tuple[int, int, bytes]]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "checker",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation_level,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    ended: set[int] = set()
    try:
        while len(ended) < PARTITIONS:
            for message in consumer.consume(1000, 0.1):
                if (error := message.error()) is None:
                    yield partition_of(message), offset_of(message), value_of(message)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended.add(partition_of(message))
    finally:
        consumer.close()


def committed_offsets(servers: str, group_id: str, topic: str) -> dict[int, int]:
    """The committed offsets of a group, as its coordinator reports them."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group_id})
    try:
        asked = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        return {each.partition: each.offset for each in consumer.committed(asked, TIMEOUT_S)}
    finally:
        consumer.close()
