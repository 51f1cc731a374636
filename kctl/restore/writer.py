"""Records written exactly once: a transaction contains records and the progress of the import.

The progress is an offset per partition, committed in the transaction to a group of the import's
own: the next offset of the *source* partition. So records and progress become visible together or
not at all. A new run with the same transactional id aborts the transaction of a killed one (the
coordinator waits until that is complete), reads the progress and continues there.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ClientPartition

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.restore.rows import COLUMNS
from kctl.streaming.config import client_properties, refused

MAX_RECORDS: Final = 50_000
MAX_BYTES: Final = 32 * 1024 * 1024
"""A transaction is committed when it has more."""
_MAX_MESSAGE_BYTES: Final = 1_000_000_000
"""librdkafka's largest limit: the topic's own limit decides."""
_TRANSACTION_TIMEOUT_MS: Final = 300_000
_METADATA: Final = "kctl import: next offset of the exported partition"
_FENCED: Final = {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}

GroupOffsets = Mapping[str, Mapping[TopicPartition, int]]


class ImportWriter:
    """Writes one topic.

    `_next`: the next source offset of each partition, as far as the open transaction has come.
    `_watched`: source offsets of groups that are still to be translated, ascending, by partition.
    `_found`: (group, partition, target offset) translated in the open transaction.
    """

    def __init__(
        self, session: Session, run: str, groups: GroupOffsets, compression: str = "none"
    ) -> None:
        self._timeout = session.timeout
        shared = client_properties(session)
        try:
            self._producer = Producer(
                {
                    **shared,
                    "transactional.id": run,
                    "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
                    "message.max.bytes": _MAX_MESSAGE_BYTES,
                    "queue.buffering.max.messages": 2 * MAX_RECORDS,
                    "compression.type": compression,
                    "linger.ms": 20,
                }
            )
            self._progress = Consumer({**shared, "group.id": run, "enable.auto.commit": False})
        except (KafkaException, ValueError) as error:
            raise refused(error, "cannot start a producer") from error
        self._members = {
            group: Consumer({**shared, "group.id": group, "enable.auto.commit": False})
            for group in groups
        }
        self._watched: dict[TopicPartition, list[tuple[int, str]]] = {}
        for group, offsets in groups.items():
            for partition, offset in offsets.items():
                self._watched.setdefault(partition, []).append((offset, group))
        for waiting in self._watched.values():
            waiting.sort()
        self._next: dict[TopicPartition, int] = {}
        self._found: dict[str, dict[TopicPartition, int]] = {}
        self._records = self._bytes = 0
        self._error = ""
        self.written: dict[TopicPartition, tuple[int, int, int]] = {}
        """(records, first target offset, last target offset) of this run, by partition."""

    def begin(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """End what a killed run has left open; returns the progress of each partition."""
        wanted = [ClientPartition(*each) for each in partitions]
        try:
            self._producer.init_transactions(self._timeout)
            found = self._progress.committed(wanted, self._timeout)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise refused(error, "cannot begin the import") from error
        return {TopicPartition(e.topic, e.partition): e.offset for e in found if e.offset >= 0}

    def translated_before(self, progress: Mapping[TopicPartition, int]) -> None:
        """Forget offsets of groups that earlier runs have translated; CliError if none has."""
        for partition, position in progress.items():
            waiting = self._watched.get(partition, [])
            for offset, group in waiting:
                if offset < position and not self._has_offset(group, partition):
                    raise CliError(
                        f"group {group}: {partition} was imported without --groups, so its offset "
                        f"{offset} cannot be translated any more",
                        "delete the topic and import it again with --groups, or omit --groups and "
                        "use kctl groups reset-offsets",
                    )
            self._watched[partition] = [each for each in waiting if each[0] >= position]

    def write(self, partition: TopicPartition, table: pa.Table, *, use_now: bool) -> None:
        """Write records in offset order; commits when the transaction is large enough."""
        columns = [table.column(name).to_pylist() for name in COLUMNS]
        waiting = self._watched.get(partition, [])
        for offset, timestamp, key, value, headers in zip(*columns, strict=True):
            groups = []
            while waiting and waiting[0][0] <= offset:
                groups.append(waiting.pop(0)[1])
            if timestamp is None or timestamp <= 0:
                timestamp = self._missing_timestamp(partition, offset, timestamp, use_now)
            self._send(partition, timestamp, key, value, headers, groups)
            self._bytes += len(key or b"") + len(value or b"")
        self._records += len(table)
        if len(table):
            self._next[partition] = columns[0][-1] + 1
        if self._records >= MAX_RECORDS or self._bytes >= MAX_BYTES:
            self.commit()

    def advance(self, partition: TopicPartition, end_offset: int) -> None:
        """Note that everything up to the end of a partition was written."""
        self._next[partition] = end_offset

    def commit(self) -> None:
        """Make the records, the progress and the translated offsets visible together."""
        try:
            self._flush()
            self._send_offsets(self._progress, self._next)
            for group, offsets in self._found.items():
                self._send_offsets(self._members[group], offsets)
            self._producer.commit_transaction(self._timeout)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise _failed(error) from error
        self._next, self._found = {}, {}
        self._records = self._bytes = 0

    def close(self) -> None:
        """Abort what is open; records that are not committed are never visible."""
        try:
            self._producer.purge()
            self._producer.abort_transaction(self._timeout)
        except KafkaException:
            pass  # fenced, or the cluster is gone: the coordinator aborts after the timeout
        for consumer in (self._progress, *self._members.values()):
            consumer.close()

    @property
    def left(self) -> dict[TopicPartition, list[str]]:
        """Groups by partition whose offset is at or after the end of what was imported."""
        return {
            partition: [group for _, group in waiting]
            for partition, waiting in self._watched.items()
            if waiting
        }

    def _has_offset(self, group: str, partition: TopicPartition) -> bool:
        found = self._members[group].committed([ClientPartition(*partition)], self._timeout)
        return bool(found[0].offset >= 0)

    @staticmethod
    def _missing_timestamp(
        partition: TopicPartition, offset: int, timestamp: int | None, use_now: bool
    ) -> int:
        if use_now:
            return 0  # librdkafka writes the current time
        raise CliError(
            f"{partition} offset {offset}: timestamp {-1 if timestamp is None else timestamp} "
            "cannot be written",
            "--missing-timestamps now writes such records with the current time",
        )

    def _send(
        self,
        partition: TopicPartition,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[dict[str, Any]] | None,
        groups: list[str],
    ) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._error = self._error or f"{partition}: {error.str()} ({error.name()})"
                return
            at = message.offset() or 0
            records, first, _ = self.written.get(partition, (0, at, at))
            self.written[partition] = (records + 1, first, at)
            for group in groups:
                self._found.setdefault(group, {})[partition] = at

        while True:
            try:
                self._producer.produce(
                    partition.topic,
                    value,
                    key,
                    partition.partition,
                    on_delivery=delivered,
                    timestamp=timestamp,
                    headers=[(each["key"], each["value"]) for each in headers or ()] or None,
                )
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise _failed(error) from error
        self._producer.poll(0)

    def _flush(self) -> None:
        while self._producer.flush(0.2):
            pass
        if self._error:
            raise CliError(f"{self._error}; the transaction was aborted", _RESUME)

    def _send_offsets(self, consumer: Consumer, offsets: Mapping[TopicPartition, int]) -> None:
        if offsets:
            self._producer.send_offsets_to_transaction(
                [ClientPartition(*each, at, _METADATA) for each, at in offsets.items()],
                consumer.consumer_group_metadata(),
                self._timeout,
            )


_RESUME: Final = "run the same command again to continue"


def _failed(error: KafkaException) -> CliError:
    cause = error.args[0]
    if isinstance(cause, KafkaError) and cause.code() in _FENCED:
        return CliError(
            "another import of this export into the topic has started and fenced this one",
            "let the other one finish",
        )
    found = refused(error, "the transaction failed")
    return CliError(found.message, found.hint or _RESUME, found.status)
