"""Send records and track the outcome of each."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from broker.model import TopicPartition
from kctl.cli.errors import CliError, ExitStatus
from kctl.model.records import TopicRecord
from kctl.streaming.choices import Partitioner
from kctl.streaming.config import Properties, refused
from kctl.streaming.waiting import Waiting

_POLL_S = 0.1
_FLUSH_S = 0.2
_ABORT_S = 5.0
"""An abort that takes longer is left to the coordinator, which aborts after its timeout."""
_TIMEOUTS = (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)


_PARTITIONERS: dict[Partitioner, Properties] = {
    Partitioner.JAVA: {"partitioner": "murmur2_random"},
    Partitioner.LIBRDKAFKA: {"partitioner": "consistent_random"},
    # Round robin is implemented here: each record is sent with an explicit partition.
    Partitioner.ROUND_ROBIN: {},
    # Without the sticky period the random partition is chosen per record, not per batch.
    Partitioner.RANDOM: {"partitioner": "random", "sticky.partitioning.linger.ms": 0},
}


@dataclass
class Written:
    """Records written to a partition: count, lowest and highest offset."""

    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def add(self, offset: int | None) -> None:
        """Count a record; with acks=0 its offset is unknown."""
        self.records += 1
        if offset is None or offset < 0:
            return
        self.first_offset = offset if self.first_offset is None else min(self.first_offset, offset)
        self.last_offset = offset if self.last_offset is None else max(self.last_offset, offset)


@dataclass
class Outcome:
    """Outcome of the records sent so far."""

    written: dict[TopicPartition, Written] = field(default_factory=lambda: defaultdict(Written))
    failed: int = 0
    first_error: str = ""
    timed_out: int = 0
    """Failed records that may have been written: only the acknowledgement is missing."""

    @property
    def records(self) -> int:
        """Number of records written."""
        return sum(part.records for part in self.written.values())

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Delivery report of one record."""
        if error is None:
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            self.written[place].add(message.offset())
            return
        self.failed += 1
        self.timed_out += error.code() in _TIMEOUTS
        self.first_error = self.first_error or f"{error.str()} ({error.name()})"


class Sender:
    """A producer that waits while librdkafka's queue is full, and records the outcome."""

    def __init__(
        self,
        properties: Properties,
        partitioner: Partitioner,
        partitions: Callable[[str], int],
        *,
        waiting: Waiting,
        sync: bool = False,
    ) -> None:
        """`partitions` returns the number of partitions of a topic, for round robin."""
        self.outcome = Outcome()
        self.timeout_s = _timeout_s(properties)
        """How long records may wait for their acknowledgement."""
        self._waiting = waiting
        self._sync = sync
        self._round_robin = partitioner is Partitioner.ROUND_ROBIN
        self._partitions = partitions
        self._next: dict[str, Iterator[int]] = {}
        try:
            self.producer = Producer({**_PARTITIONERS[partitioner], **properties})
        except (KafkaException, ValueError) as error:
            raise refused(error, "cannot start a producer") from error

    def send(self, topic: str, record: TopicRecord) -> None:
        """Send one record; with `sync`, wait for its outcome."""
        arguments = self._arguments(topic, record)
        while True:
            try:
                self.producer.produce(topic, on_delivery=self.outcome.delivered, **arguments)
                break
            except BufferError:
                self.producer.poll(_POLL_S)
                self._waiting(len(self.producer))
            except KafkaException as error:
                raise refused(error, f"a record for {topic} was refused") from error
        self.producer.poll(0)
        if self._sync:
            self.flush()

    def flush(self) -> None:
        """Wait until all records are written or have failed; can be interrupted by Ctrl-C."""
        while outstanding := self.producer.flush(_FLUSH_S):
            self._waiting(outstanding)

    def purge(self) -> None:
        """Discard records that were not sent yet, after Ctrl-C."""
        self.producer.purge()
        self.producer.flush(_FLUSH_S)

    @contextmanager
    def transaction(self, timeout_s: float) -> Iterator[None]:
        """Write all records sent inside the block in one transaction; abort it on any failure."""
        try:
            self.producer.init_transactions(timeout_s * 2 / 3)  # a coordinator that hangs
            self.producer.begin_transaction()
        except KafkaException as error:
            raise refused(error, "cannot begin a transaction") from error
        try:
            yield
            self.flush()
            if self.outcome.failed:
                raise CliError(f"the transaction was aborted: {self.outcome.first_error}")
        except BaseException:
            self._abort()
            raise
        try:
            self.producer.commit_transaction(timeout_s * 2 / 3)
        except KafkaException as error:
            failure = refused(error, "the transaction could not be committed")
            if failure.status is ExitStatus.TIMED_OUT:
                failure.message += ": it may have been committed"
                failure.hint = "kctl transactions describe shows its state"
            raise failure from error

    def _abort(self) -> None:
        """Abort the transaction; CliError if that fails too."""
        self.producer.purge()
        try:
            self.producer.abort_transaction(_ABORT_S)
        except KafkaException as error:
            reason = self.outcome.first_error or "interrupted"
            failure = refused(error, f"the transaction failed: {reason}; cannot abort it yet")
            failure.hint = (
                "the coordinator aborts it after transaction.timeout.ms; kctl transactions "
                "describe shows its state"
            )
            raise failure from error

    def _arguments(self, topic: str, record: TopicRecord) -> dict[str, Any]:
        arguments: dict[str, Any] = {"value": record.value, "key": record.key}
        if record.headers:
            arguments["headers"] = list(record.headers)
        if record.timestamp_ms is not None:
            arguments["timestamp"] = _sendable(record.timestamp_ms)
        partition = self._turn(topic) if self._round_robin else None
        if record.partition is not None:
            partition = record.partition
        if partition is not None:
            arguments["partition"] = partition
        return arguments

    def _turn(self, topic: str) -> int:
        if topic not in self._next:
            self._next[topic] = _endless(self._partitions(topic))
        return next(self._next[topic])


def _sendable(timestamp_ms: int) -> int:
    """The timestamp; CliError for one that librdkafka would replace by the current time."""
    if timestamp_ms <= 0:
        raise CliError(
            f"a record cannot be sent with the timestamp {timestamp_ms}",
            "omit the timestamp to use the current time",
        )
    return timestamp_ms


def _endless(partitions: int) -> Iterator[int]:
    """Partitions in turn, beginning at a random one."""
    number = random.randrange(partitions)  # noqa: S311 - nothing secret
    while True:
        yield number
        number = (number + 1) % partitions


def _timeout_s(properties: Properties) -> float:
    """The setting has two names in librdkafka, and a default of five minutes."""
    aliases = ("delivery.timeout.ms", "message.timeout.ms")
    found = (properties[name] for name in aliases if name in properties)
    return float(str(next(found, 300_000))) / 1000
