"""Read records: from given partitions and offsets, or as a member of a consumer group.

Both kinds of reader yield batches of records, which may be empty, so that the caller can check
timeouts. Ctrl-C is handled between two batches.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from broker.model import TopicPartition
from kctl.model.records import (
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
    """A source of records."""

    def batches(self, at_most: Callable[[], int | None]) -> Iterator[list[TopicRecord]]:
        """Records as they arrive; ends when all requested records were read.

        `at_most` returns the maximum size of the next batch; None for no limit.
        """
        ...

    def took(self, batch: Sequence[TopicRecord]) -> None:
        """Mark the records of a batch as consumed."""
        ...


class PartitionReader:
    """Reads partitions from given offsets, up to given ends or without end."""

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
            messages = consume(self._consumer, at_most(), in_group=False)
            yield [topic_record(message) for message in messages if self._is_wanted(message)]

    def took(self, batch: Sequence[TopicRecord]) -> None:
        """Do nothing: there are no committed offsets."""

    def _is_wanted(self, message: Message) -> bool:
        place, offset = place_of(message), message.offset() or 0
        if message.error():
            if self._stop:
                self._stop.passed(place, offset)
            return False
        return self._stop is None or self._stop.wants(place, offset)


class GroupReader:
    """Reads as a member of a consumer group and commits the offsets of consumed records.

    With `exit_at_end` it ends when all assigned partitions were read to the end.
    """

    def __init__(
        self, consumer: Consumer, topics: Sequence[str], *, commit: bool, exit_at_end: bool
    ) -> None:
        self._consumer = consumer
        self._commit = commit
        self._exit_at_end = exit_at_end
        self._assigned: set[TopicPartition] = set()
        self._at_end: dict[TopicPartition, int] = {}
        """End offsets of the partitions that were read to the end. Transaction markers after the
        last record count as read."""
        consumer.subscribe(list(topics), on_assign=self._assign, on_revoke=self._revoke)

    def batches(self, at_most: Callable[[], int | None]) -> Iterator[list[TopicRecord]]:
        """See `Reader`."""
        while not self._is_done():
            messages = consume(self._consumer, at_most())
            yield [topic_record(message) for message in messages if self._is_record(message)]

    def took(self, batch: Sequence[TopicRecord]) -> None:
        """Store the offsets; librdkafka commits them periodically and when it is closed."""
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
"""How long librdkafka pauses fetching when its queue is full. Its default of one second is longer
than we need to process the whole queue."""


@contextmanager
def open_consumer(properties: Properties) -> Iterator[Consumer]:
    """A consumer that always leaves its group and closes."""
    try:
        consumer = Consumer({_BACKOFF: 10, **properties})
    except (KafkaException, ValueError) as error:
        raise refused(error, "cannot start a consumer") from error
    try:
        yield consumer
    finally:
        consumer.close()


def consume(consumer: Consumer, limit: int | None, *, in_group: bool = True) -> list[Message]:
    """The messages available now, at most `limit`; CliError if librdkafka failed.

    librdkafka looks for the coordinator of its group id also if it only reads assigned partitions.
    Reading assigned partitions needs no ACL for the group: without `in_group`, an authorization
    error about it is ignored.
    """
    wanted = BATCH_RECORDS if limit is None else min(limit, BATCH_RECORDS)
    messages: list[Message] = consumer.consume(wanted, _WAIT_S)
    if not in_group:
        messages = [message for message in messages if not _is_group_refusal(message)]
    for message in messages:
        error = message.error()
        if error and error.code() != KafkaError._PARTITION_EOF:
            raise refused(error, "reading failed")
    return messages


def _is_group_refusal(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def place_of(message: Message) -> TopicPartition:
    """The partition of a message."""
    return TopicPartition(message.topic() or "", message.partition() or 0)


def _headers(message: Message) -> Headers:
    found: Any = message.headers() or ()  # a list of pairs; the declared type allows more
    return tuple(found)


def topic_record(message: Message) -> TopicRecord:
    """Convert a message of librdkafka."""
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
