"""Read records: from chosen partitions and offsets, or as a member of a group.

Both kinds of reader give the same thing, an endless row of batches, each of which may be empty: an
empty one is the caller's chance to look at the clock. Ctrl-C is heard between two of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from broker.model import TopicPartition
from kctl.records.record import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    Headers,
    TopicRecord,
)
from kctl.streaming.config import Properties, refused
from kctl.streaming.stopping import StopRule

BATCH_RECORDS = 1000
_WAIT_S = 0.1
_TIMESTAMP_TYPES = {
    confluent_kafka.TIMESTAMP_NOT_AVAILABLE: NO_TIMESTAMP_TYPE,
    confluent_kafka.TIMESTAMP_CREATE_TIME: CREATE_TIME,
    confluent_kafka.TIMESTAMP_LOG_APPEND_TIME: LOG_APPEND_TIME,
}


class Reader(Protocol):
    """Where records come from."""

    def batches(self, at_most: Callable[[], int | None]) -> Iterator[list[TopicRecord]]:
        """Records as they come; ends when there is nothing more to be had.

        `at_most` is asked how many records the next batch may have, None being any number.
        """
        ...

    def took(self, batch: Sequence[TopicRecord]) -> None:
        """The caller is done with a batch: its records count as consumed."""
        ...


class PartitionReader:
    """Reads partitions from given offsets, up to given ends or for ever."""

    def __init__(
        self,
        consumer: Consumer,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int] | None,
    ) -> None:
        self._consumer = consumer
        self._stop = None if ends is None else StopRule(ends)
        wanted = []
        for partition, offset in starts.items():
            if self._stop:
                self._stop.passed(partition, offset)
            if ends is None or offset < ends[partition]:
                wanted.append(confluent_kafka.TopicPartition(*partition, offset))
        consumer.assign(wanted)

    def batches(self, at_most: Callable[[], int | None]) -> Iterator[list[TopicRecord]]:
        """See `Reader`."""
        while not (self._stop and self._stop.is_done):
            messages = consume(self._consumer, at_most())
            yield [topic_record(message) for message in messages if self._is_wanted(message)]

    def took(self, batch: Sequence[TopicRecord]) -> None:
        """Nobody keeps account."""

    def _is_wanted(self, message: Message) -> bool:
        place, offset = place_of(message), message.offset() or 0
        if message.error():
            if self._stop:
                self._stop.passed(place, offset)
            return False
        return self._stop is None or self._stop.wants(place, offset)


class GroupReader:
    """Reads as a member of a group; what was taken of a batch is committed.

    With `exit_at_end` it ends when all partitions that it was given have been read to the end.
    """

    def __init__(
        self, consumer: Consumer, topics: Sequence[str], *, commit: bool, exit_at_end: bool
    ) -> None:
        self._consumer = consumer
        self._commit = commit
        self._exit_at_end = exit_at_end
        self._assigned: set[TopicPartition] = set()
        self._at_end: dict[TopicPartition, int] = {}
        """Partitions that were read to the end, and where that is: after the last record there
        may be markers of transactions, which count as read."""
        consumer.subscribe(list(topics), on_assign=self._assign, on_revoke=self._revoke)

    def batches(self, at_most: Callable[[], int | None]) -> Iterator[list[TopicRecord]]:
        """See `Reader`."""
        while not self._is_done():
            messages = consume(self._consumer, at_most())
            yield [topic_record(message) for message in messages if self._is_record(message)]

    def took(self, batch: Sequence[TopicRecord]) -> None:
        """Note what was consumed; librdkafka commits it in a while, and when it is closed."""
        nexts = {
            TopicPartition(record.topic or "", record.partition or 0): (record.offset or 0) + 1
            for record in batch
        }
        offsets = [
            confluent_kafka.TopicPartition(*place, offset)
            for place, offset in (nexts | self._at_end).items()
        ]
        if offsets and self._commit:
            self._consumer.store_offsets(offsets=offsets)

    def _is_record(self, message: Message) -> bool:
        place = place_of(message)
        if message.error():
            self._at_end[place] = message.offset() or 0
            return False
        self._at_end.pop(place, None)
        return True

    def _is_done(self) -> bool:
        return self._exit_at_end and bool(self._assigned) and self._at_end.keys() >= self._assigned

    def _assign(self, _: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self._assigned |= {TopicPartition(found.topic, found.partition) for found in partitions}

    def _revoke(self, _: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        gone = {TopicPartition(found.topic, found.partition) for found in partitions}
        self._assigned -= gone
        for place in gone:
            self._at_end.pop(place, None)


_BACKOFF = "fetch.queue.backoff.ms"
"""How long librdkafka sleeps when it has read ahead far enough: a second, if it is not told, in
which we have long dealt with all that it had."""


@contextmanager
def open_consumer(properties: Properties) -> Iterator[Consumer]:
    """A consumer that leaves its group and closes whatever happens."""
    try:
        consumer = Consumer({_BACKOFF: 10, **properties})
    except (KafkaException, ValueError) as error:
        raise refused(error, "cannot start a consumer") from error
    try:
        yield consumer
    finally:
        consumer.close()


def consume(consumer: Consumer, limit: int | None) -> list[Message]:
    """What there is by now, at most `limit`; CliError if librdkafka gave up."""
    wanted = BATCH_RECORDS if limit is None else min(limit, BATCH_RECORDS)
    messages: list[Message] = consumer.consume(wanted, _WAIT_S)
    for message in messages:
        error = message.error()
        if error and error.code() != KafkaError._PARTITION_EOF:
            raise refused(error, "reading failed")
    return messages


def place_of(message: Message) -> TopicPartition:
    """Which partition a message is from."""
    return TopicPartition(message.topic() or "", message.partition() or 0)


def _headers(message: Message) -> Headers:
    found: Any = message.headers() or ()  # a list of pairs; the declared type allows more
    return tuple(found)


def topic_record(message: Message) -> TopicRecord:
    """librdkafka's message as ours."""
    kind, timestamp_ms = message.timestamp()
    return TopicRecord(
        key=message.key(),
        value=message.value(),
        headers=_headers(message),
        timestamp_ms=timestamp_ms if kind != confluent_kafka.TIMESTAMP_NOT_AVAILABLE else None,
        timestamp_type=_TIMESTAMP_TYPES[kind],
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
    )
