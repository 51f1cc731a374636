"""Decides which records of a batch compaction keeps (Kafka's RecordFilter, KIP-534).

A record is retained if no later record of its key is known, unless it is a tombstone past its
delete horizon. When the cleaner first sees a tombstone (or a marker of a transaction without
records), the batch gets a delete horizon, `delete.retention.ms` from now, in place of its base
timestamp.

A batch without retained records is removed, unless it is the last batch of its producer: an empty
batch is kept then, because its sequence numbers are still needed.
"""

from dataclasses import dataclass
from typing import NamedTuple

from broker.log.cleaned_transactions import CleanedTransactions
from broker.log.offset_map import OffsetMap
from broker.log.producer_entry import ProducerEntry
from broker.records.batch import Batch, BatchHeader, iterate_batches, read_header
from broker.records.builder import BatchSettings, build_batch, build_empty_batch
from broker.records.layout import CURRENT_MAGIC
from broker.records.legacy import build_messages
from broker.records.record import RecordTuple


class LastRecord(NamedTuple):
    """The last batch of a producer: a data batch, or else a marker of this epoch."""

    last_data_offset: int | None
    producer_epoch: int

    @classmethod
    def of(cls, entry: ProducerEntry) -> "LastRecord":
        """The last batch of this producer."""
        return cls(entry.last_data_offset, entry.producer_epoch)


class Kept(NamedTuple):
    """What is retained of a batch: bytes, headers (one per old message), number of records."""

    data: bytes | memoryview
    headers: list[BatchHeader]
    num_records: int


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """The rules for one segment in one cleaning.

    `retain_old_tombstones`: formats 0 and 1 have no horizon; the segment's age decides for them.
    """

    offset_map: OffsetMap
    transactions: CleanedTransactions
    last_records: dict[int, LastRecord]
    now_ms: int
    delete_retention_ms: int
    retain_old_tombstones: bool

    def keep(self, batch: Batch) -> Kept | None:
        """What is retained of the batch; None if it is removed."""
        can_discard = self.transactions.can_discard(batch)
        horizon = batch.header.delete_horizon_ms
        is_discarded = can_discard
        if batch.is_control:
            is_discarded = can_discard and horizon is not None and horizon <= self.now_ms
        must_remain = self._is_last_of_producer(batch)
        if is_discarded and not must_remain:
            return None
        records = batch.record_tuples()
        kept = [] if is_discarded else self._kept_records(batch, records, horizon)
        if not kept:
            return _emptied(batch) if must_remain else None
        has_tombstone = any(record[3] is None for record in kept)
        wants_horizon = has_tombstone or (can_discard and batch.is_control)
        if batch.magic == CURRENT_MAGIC and wants_horizon and horizon is None:
            return _rebuilt(batch, kept, self.now_ms + self.delete_retention_ms)
        if len(kept) == len(records):
            return Kept(batch.view, [batch.header], len(kept))
        return _rebuilt(batch, kept, horizon)

    def _is_last_of_producer(self, batch: Batch) -> bool:
        last = self.last_records.get(batch.header.producer_id)
        if last is None or not batch.header.has_producer_id:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.header.producer_epoch == last.producer_epoch

    def _kept_records(
        self, batch: Batch, records: list[RecordTuple], horizon: int | None
    ) -> list[RecordTuple]:
        if batch.is_control:
            return records
        if batch.magic == CURRENT_MAGIC:
            keeps_tombstones = horizon is None or self.now_ms < horizon
        else:
            keeps_tombstones = self.retain_old_tombstones
        return [record for record in records if self._is_kept(record, keeps_tombstones)]

    def _is_kept(self, record: RecordTuple, keeps_tombstones: bool) -> bool:
        offset, _, key, value, _ = record
        if offset > self.offset_map.latest_offset:
            return True  # beyond the end of the map, so its key may have no later record
        if key is None or (value is None and not keeps_tombstones):
            return False
        return offset >= self.offset_map.get(key)


def _settings(batch: Batch, delete_horizon_ms: int | None) -> BatchSettings:
    header = batch.header
    return BatchSettings(
        codec=batch.codec,
        timestamp_type=header.timestamp_type,
        append_time=header.max_timestamp,
        partition_leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        delete_horizon_ms=delete_horizon_ms,
    )


def _rebuilt(batch: Batch, kept: list[RecordTuple], delete_horizon_ms: int | None) -> Kept:
    """A batch of the kept records that still spans the offsets and sequences of the old."""
    header = batch.header
    if batch.magic < CURRENT_MAGIC:
        data = build_messages(
            kept, batch.magic, batch.codec, header.timestamp_type, header.max_timestamp
        )
    else:
        settings = _settings(batch, delete_horizon_ms)
        data = build_batch(kept, settings, header.base_offset, header.last_offset)
    return Kept(data, [rebuilt.header for rebuilt in iterate_batches(data)], len(kept))


def _emptied(batch: Batch) -> Kept:
    """Only the header, with offsets, producer and the largest timestamp."""
    header = batch.header
    data = build_empty_batch(
        header.base_offset, header.last_offset, header.max_timestamp, _settings(batch, None)
    )
    return Kept(data, [read_header(data)], 0)
