"""Measurements with librdkafka: produce and consume throughput, end-to-end latency."""

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.streaming.config import Properties, refused
from kctl.streaming.rates import Latencies, Pacer, Throughput
from kctl.streaming.reading import consume, open_consumer
from kctl.streaming.statistics import await_statistics
from kctl.streaming.waiting import Waiting

Result = dict[str, float]
Progress = Callable[[Result], None]

PROGRESS_EVERY_S = 1.0
"""Interval between progress reports."""
_POLL_S = 0.05


@dataclass(frozen=True)
class Load:
    """What to send."""

    topic: str
    num_records: int
    record_size: int
    per_second: float | None = None
    payloads: tuple[bytes, ...] = ()
    """Records to choose from at random, instead of random bytes."""
    is_monotonic: bool = False
    """Whether the values are 0, 1, 2 …"""
    transaction_s: float | None = None
    """Commit a transaction after this time; None for a producer without transactions."""

    def chooser(self) -> Callable[[int], bytes]:
        """A function from the number of a record to its value."""
        if self.is_monotonic:
            return lambda number: str(number).encode()
        payloads = self.payloads or (os.urandom(self.record_size),)
        if len(payloads) == 1:
            return lambda _: payloads[0]
        return lambda _: random.choice(payloads)  # noqa: S311


class Ticker:
    """Calls `show` at most once per interval."""

    def __init__(self, show: Progress, every_s: float = PROGRESS_EVERY_S) -> None:
        self._show = show
        self._every_s = every_s
        self._next_s = time.monotonic() + every_s

    def maybe_show(self, result: Callable[[float], Result]) -> None:
        """Show `result` if the interval has passed."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + self._every_s
            self._show(result(now_s))


_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""Outcomes of records that were discarded after Ctrl-C, queued or already sent."""


class ProducerTest:
    """Sends records at the allowed rate and measures the time until each is acknowledged."""

    def __init__(
        self,
        properties: Properties,
        load: Load,
        show: Progress,
        interrupted: Event,
        waiting: Waiting,
    ) -> None:
        self._load = load
        self._waiting = waiting
        self._properties = properties
        self._interrupted = interrupted
        self._ticker = Ticker(show)
        self._latencies = Latencies()
        self._failed: KafkaError | None = None
        self._throughput = Throughput(time.monotonic())
        self._commit_at_s: float | None = None
        """When the open transaction is committed; None if none is open."""
        try:
            self._producer = Producer(properties)
            if load.transaction_s is not None:
                self._producer.init_transactions()
        except (KafkaException, ValueError) as error:
            raise refused(error, "cannot start a producer") from error

    def run(self) -> Result:
        """Send all records; CliError if one was not written. Returns early when interrupted.

        An open transaction is aborted when interrupted.
        """
        payload = self._load.chooser()
        self._throughput = Throughput(time.monotonic())
        pacer = Pacer(self._load.per_second, self._throughput.started_s)
        for number in range(self._load.num_records):
            self._wait(pacer, number)
            if self._interrupted.is_set():
                break
            self._maybe_begin()
            self._send(payload(number))
            self._maybe_commit(time.monotonic())
            if number % 1000 == 0:
                self._ticker.maybe_show(self._result)
        while not self._interrupted.is_set() and (left := self._producer.flush(_POLL_S)):
            self._ticker.maybe_show(self._result)
            self._waiting(left)
        if self._interrupted.is_set():
            self._producer.purge()
            self._producer.flush(_POLL_S)
            if self._commit_at_s is not None:
                self._producer.abort_transaction()
        if self._failed:
            raise refused(self._failed, "a record was not written")
        if not self._interrupted.is_set():
            self._maybe_commit(float("inf"))
        await_statistics(self._properties, self._producer.poll)
        return self._result(time.monotonic())

    def _maybe_begin(self) -> None:
        """Begin a transaction, if there are transactions and none is open."""
        if self._load.transaction_s is not None and self._commit_at_s is None:
            self._producer.begin_transaction()
            self._commit_at_s = time.monotonic() + self._load.transaction_s

    def _maybe_commit(self, now_s: float) -> None:
        """Commit the open transaction if its duration has passed."""
        if self._commit_at_s is None or now_s < self._commit_at_s:
            return
        self._commit_at_s = None
        try:
            self._producer.commit_transaction()
        except KafkaException as error:
            raise refused(error, "a transaction was not committed") from error

    def _wait(self, pacer: Pacer, number: int) -> None:
        while (left_s := pacer.wait_s(number, time.monotonic())) > 0:
            if self._interrupted.is_set():
                return
            self._producer.poll(min(left_s, _POLL_S))
            self._ticker.maybe_show(self._result)

    def _send(self, payload: bytes) -> None:
        while not self._interrupted.is_set():
            try:
                self._producer.produce(self._load.topic, payload, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(_POLL_S)
                self._waiting(len(self._producer))
            except KafkaException as error:
                raise _not_sent(error) from error
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error:
            if error.code() not in _PURGED:
                self._failed = self._failed or error
            return
        self._latencies.add(1000 * (message.latency() or 0.0))
        self._throughput.add(len(message))

    def _result(self, now_s: float) -> Result:
        return self._throughput.summary(now_s) | self._latencies.summary()


def _not_sent(error: KafkaException) -> CliError:
    """A record that librdkafka did not accept, mostly because of its size."""
    failure = refused(error, "cannot send a record")
    if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
        failure.hint = "-X message.max.bytes=N allows larger records; see also max.message.bytes"
    return failure


def measure_consumer(
    properties: Properties,
    starts: Mapping[TopicPartition, int],
    num_records: int,
    idle_s: float,
    show: Progress,
    interrupted: Event,
    show_every_s: float = PROGRESS_EVERY_S,
) -> Result:
    """Read `num_records` from the given offsets; stops early if none arrives for `idle_s`."""
    ticker = Ticker(show, show_every_s)
    with open_consumer(properties) as consumer:
        throughput = Throughput(time.monotonic())
        consumer.assign(
            [confluent_kafka.TopicPartition(*place, offset) for place, offset in starts.items()]
        )
        first_s: float | None = None
        heard_s = time.monotonic()
        while throughput.records < num_records and time.monotonic() - heard_s < idle_s:
            if interrupted.is_set():
                break  # interrupted: report the results so far
            for message in consume(consumer, num_records - throughput.records, in_group=False):
                throughput.add(len(message.value() or b"") + len(message.key() or b""))
                heard_s = time.monotonic()
                first_s = first_s or heard_s
            ticker.maybe_show(throughput.summary)
        await_statistics(properties, consumer.poll)
    result = throughput.summary(heard_s)
    result["joining_s"] = round((first_s or heard_s) - throughput.started_s, 3)
    return result


def measure_latency(
    properties: Properties,
    consumer_properties: Properties,
    load: Load,
    timeout_s: float,
    interrupted: Event,
) -> Result:
    """Send a record, wait until it is read, repeat; measures each round trip."""
    latencies = Latencies()
    for milliseconds in _round_trips(properties, consumer_properties, load, timeout_s):
        latencies.add(milliseconds)
        if interrupted.is_set():
            break
    return {"records": len(latencies), **latencies.summary()}


def _round_trips(
    properties: Properties, consumer_properties: Properties, load: Load, timeout_s: float
) -> Iterator[float]:
    place = confluent_kafka.TopicPartition(load.topic, 0)
    producer = Producer(properties)
    with open_consumer(consumer_properties) as consumer:
        try:
            _, end = consumer.get_watermark_offsets(place, timeout=timeout_s / 3)
        except KafkaException as error:
            raise refused(error, f"cannot read the offsets of {load.topic}-0") from error
        consumer.assign([confluent_kafka.TopicPartition(load.topic, 0, end)])
        for _ in range(load.num_records):
            payload = os.urandom(load.record_size)
            started_s = time.perf_counter()
            try:
                producer.produce(load.topic, payload, partition=0)
            except KafkaException as error:
                raise _not_sent(error) from error
            producer.flush(timeout_s)
            message = consumer.poll(timeout_s)
            if message is None or message.error():
                raise CliError(f"a record was not read back within {timeout_s:g} s")
            if message.value() != payload:
                raise CliError(
                    "a different record was read back", "no other producer may write to the topic"
                )
            yield 1000 * (time.perf_counter() - started_s)
