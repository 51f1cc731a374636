"""Indexes, snapshots, checkpoints and metadata as rows; batches and records are in `log_rows`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from broker.log.checkpoints import (
    read_epochs,
    read_meta_properties,
    read_offsets,
    read_partition_metadata,
)
from broker.log.layout import META_PROPERTIES_FILE
from broker.log.producer_snapshot import read_snapshot
from broker.records.batch import increment_sequence
from kctl.cli.times import iso_time
from kctl.dump.reading.files import DumpFile, FileKind
from kctl.dump.reading.readers import (
    offset_entries,
    open_offset_index,
    open_time_index,
    open_txn_index,
    time_entries,
)
from kctl.dump.rows.log_rows import Row, View, known, log_rows


def rows_of(file: DumpFile, view: View) -> Iterator[Row]:
    """The rows of a file; CorruptRecord, CorruptCheckpoint or OSError where it cannot be read."""
    if file.kind is FileKind.LOG:
        return log_rows(file, view)
    return _READERS[file.kind](file)


def _typed(file: DumpFile, kind: str, **fields: object) -> Row:
    return {"type": kind, "file": str(file.path), **fields}


def _offset_index_rows(file: DumpFile) -> Iterator[Row]:
    for offset, position in offset_entries(open_offset_index(file.path, file.base_offset)):
        yield _typed(file, "index_entry", offset=offset, position=position)


def _time_index_rows(file: DumpFile) -> Iterator[Row]:
    for timestamp, offset in time_entries(open_time_index(file.path, file.base_offset)):
        time = iso_time(timestamp)
        yield _typed(file, "time_index_entry", timestamp=timestamp, time=time, offset=offset)


def _txn_index_rows(file: DumpFile) -> Iterator[Row]:
    for txn in open_txn_index(file.path):
        yield _typed(file, "aborted_transaction", **txn._asdict())


def _snapshot_rows(file: DumpFile) -> Iterator[Row]:
    for entry in read_snapshot(file.path):
        has_batch = entry.last_offset >= 0
        first = increment_sequence(entry.last_sequence, -entry.offset_delta)
        yield _typed(
            file,
            "producer",
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
            first_sequence=first if has_batch else None,
            last_sequence=entry.last_sequence if has_batch else None,
            last_offset=known(entry.last_offset),
            offset_delta=entry.offset_delta if has_batch else None,
            timestamp=known(entry.timestamp),
            time=iso_time(entry.timestamp),
            coordinator_epoch=known(entry.coordinator_epoch),
            current_txn_first_offset=known(entry.current_txn_first_offset),
        )


def _epoch_rows(file: DumpFile) -> Iterator[Row]:
    for entry in read_epochs(file.path):
        yield _typed(file, "leader_epoch", epoch=entry.epoch, start_offset=entry.start_offset)


def _checkpoint_rows(file: DumpFile) -> Iterator[Row]:
    for (topic, partition), offset in read_offsets(file.path).items():
        yield _typed(file, "checkpoint", topic=topic, partition=partition, offset=offset)


def _metadata_rows(file: DumpFile) -> Iterator[Row]:
    for key, value in _metadata_pairs(file.path):
        yield _typed(file, "metadata", key=key, value=value)


def _metadata_pairs(path: Path) -> Iterator[tuple[str, object]]:
    if path.name == META_PROPERTIES_FILE:
        meta = read_meta_properties(path.parent)
        if meta:
            yield from [("version", meta.version), ("broker.id", meta.broker_id)]
            yield from [("cluster.id", meta.cluster_id), *meta.others]
    else:
        topic_id = read_partition_metadata(path.parent)
        yield from [("version", 0), ("topic_id", str(topic_id))]


_READERS: Final[dict[FileKind, Callable[[DumpFile], Iterator[Row]]]] = {
    FileKind.OFFSET_INDEX: _offset_index_rows,
    FileKind.TIME_INDEX: _time_index_rows,
    FileKind.TXN_INDEX: _txn_index_rows,
    FileKind.SNAPSHOT: _snapshot_rows,
    FileKind.EPOCHS: _epoch_rows,
    FileKind.CHECKPOINT: _checkpoint_rows,
    FileKind.METADATA: _metadata_rows,
}
