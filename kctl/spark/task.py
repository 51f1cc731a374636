"""What a Spark worker runs: one task, from pieces of partitions to files set aside.

Memory is bounded whatever a partition's size: records are gathered up to CHUNK_BYTES, written as
one Arrow table, and forgotten.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from broker.records.batch import Batch
from kctl.spark import log_source, wire_source
from kctl.spark.aborted import AbortedTransactions
from kctl.spark.columns import ColumnGatherer
from kctl.spark.plan import ExportTask, Piece
from kctl.spark.results import PartitionCount, TaskResult
from kctl.spark.settings import IsolationLevel, TaskSettings
from kctl.spark.sink import Sink
from kctl.spark.staging import Staging

CHUNK_BYTES = 16 * 1024 * 1024

Fetched = tuple[Iterable[Batch], Iterable[tuple[int, int]]]
"""Batches in order, and the aborted transactions among them: (producer id, first offset)."""


def run_task(task: ExportTask, settings: TaskSettings) -> TaskResult:
    """Do a task, or find that another attempt has done it; leaves nothing if it fails."""
    staging = Staging(Path(settings.staging))
    if (done := staging.result(task.index)) is not None:
        return done
    with staging.attempt(task.index) as directory:
        sink = Sink(directory, f"part-{task.index:05d}", settings)
        try:
            counts = [_export_piece(piece, settings, sink) for piece in task.pieces]
        finally:
            files = sink.close()
        return staging.finish(directory, TaskResult(task.index, tuple(counts), tuple(files)))


def _export_piece(piece: Piece, settings: TaskSettings, sink: Sink) -> PartitionCount:
    count = PartitionCount(piece.topic, piece.partition)
    columns = tuple(dict.fromkeys((*settings.columns, "offset", "timestamp")))
    for table, size_bytes in piece_tables(piece, settings, columns):
        count = count.plus(count_table(piece, table, sink.write(piece, table), size_bytes))
    return count


def count_table(piece: Piece, table: pa.Table, undecodable: int, size_bytes: int) -> PartitionCount:
    """What a table adds to the count of its partition; it has the column `offset`, and rows."""
    offsets = table.column("offset")
    return PartitionCount(
        piece.topic,
        piece.partition,
        len(table) - undecodable,
        undecodable,
        size_bytes,
        offsets[0].as_py(),
        offsets[-1].as_py(),
    )


def piece_tables(
    piece: Piece, settings: TaskSettings, columns: tuple[str, ...]
) -> Iterator[tuple[pa.Table, int]]:
    """The records of a piece that its reader may see, as tables with the bytes behind them."""
    gatherer = ColumnGatherer(piece.topic, piece.partition, columns)
    for batch in _visible(_fetch(piece, settings), settings.isolation):
        gatherer.add(batch, piece.first_offset, piece.end_offset)
        if gatherer.size_bytes >= CHUNK_BYTES:
            yield gatherer.table(), gatherer.size_bytes
            gatherer = ColumnGatherer(piece.topic, piece.partition, columns)
    if len(gatherer):
        yield gatherer.table(), gatherer.size_bytes


def _fetch(piece: Piece, settings: TaskSettings) -> Iterable[Fetched]:
    if piece.path:
        aborted = [(span.producer_id, span.first_offset) for span in piece.aborted]
        return [(log_source.read_piece(piece), aborted)]
    return wire_source.read_piece(piece, settings)


def _visible(fetched: Iterable[Fetched], isolation: IsolationLevel) -> Iterator[Batch]:
    """What a consumer sees: no markers and, unless it reads uncommitted, nothing aborted."""
    is_committed = isolation is IsolationLevel.READ_COMMITTED
    for batches, aborted in fetched:
        transactions = AbortedTransactions(aborted if is_committed else ())
        for batch in batches:
            if batch.is_control:
                transactions.end_transaction(batch)
            elif not transactions.hides(batch.header):
                yield batch


def count_records(piece: Piece, settings: TaskSettings) -> int:
    """How many records of a piece its reader may see, told by headers where they suffice."""
    first, end = piece.first_offset, piece.end_offset
    count = 0
    for batch in _visible(_fetch(piece, settings), settings.isolation):
        header = batch.header
        is_inside = first <= header.base_offset and header.last_offset < end
        if batch.records_count is not None and is_inside:
            count += batch.records_count
        else:
            count += sum(first <= offset < end for offset in batch.columns().offsets)
    return count
