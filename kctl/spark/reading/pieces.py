"""The visible records of a piece as Arrow tables.

Memory is bounded whatever the size of a partition: records are gathered up to CHUNK_BYTES, then
become one table.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa

from broker.records.batch import Batch
from kctl.spark.decoding.columns import ColumnGatherer
from kctl.spark.planning.plan import Piece
from kctl.spark.planning.settings import IsolationLevel, TaskSettings
from kctl.spark.reading import cluster, log_directory
from kctl.spark.reading.aborted_transactions import AbortedTransactions
from kctl.spark.reading.gaps import Gaps

CHUNK_BYTES = 16 * 1024 * 1024

Fetched = tuple[Iterable[Batch], Iterable[tuple[int, int, int]]]
"""Batches in order, and the aborted transactions that overlap them: (producer id, first offset,
last offset)."""


def connected(settings: TaskSettings) -> AbstractContextManager[object]:
    """In the block, all pieces are read through the same connections."""
    return cluster.shared_client(settings) if settings.bootstrap_servers else nullcontext()


def piece_tables(
    piece: Piece, settings: TaskSettings, columns: tuple[str, ...], gaps: Gaps | None = None
) -> Iterator[tuple[pa.Table, int]]:
    """The visible records of a piece as tables, each with the size of its decompressed records.

    Records that are gone are an error, unless `gaps` says that they are skipped.
    """
    gatherer = ColumnGatherer(piece.topic, piece.partition, columns)
    gaps = Gaps() if gaps is None else gaps
    for batch in _visible(_fetch(piece, settings, gaps), settings.isolation):
        # The batch after a gap may begin before its end: brokers delete whole batches only.
        gatherer.add(batch, max(piece.first_offset, gaps.end_offset), piece.end_offset)
        if gatherer.size_bytes >= CHUNK_BYTES:
            yield gatherer.table(), gatherer.size_bytes
            gatherer = ColumnGatherer(piece.topic, piece.partition, columns)
    if len(gatherer):
        yield gatherer.table(), gatherer.size_bytes


def _fetch(piece: Piece, settings: TaskSettings, gaps: Gaps) -> Iterable[Fetched]:
    if piece.path:
        aborted = [
            (each.producer_id, each.first_offset, each.last_offset) for each in piece.aborted
        ]
        return [(log_directory.read_piece(piece, gaps), aborted)]
    return cluster.read_piece(piece, settings, gaps)


def _visible(fetched: Iterable[Fetched], isolation: IsolationLevel) -> Iterator[Batch]:
    """The batches a consumer sees: no control batches and, with read_committed, none aborted."""
    is_committed = isolation is IsolationLevel.READ_COMMITTED
    for batches, aborted in fetched:
        transactions = AbortedTransactions(aborted if is_committed else ())
        for batch in batches:
            if not transactions.hides(batch):
                yield batch


def count_records(piece: Piece, settings: TaskSettings) -> int:
    """The number of visible records of a piece, from batch headers where they suffice."""
    first, end = piece.first_offset, piece.end_offset
    count = 0
    for batch in _visible(_fetch(piece, settings, Gaps()), settings.isolation):
        header = batch.header
        is_inside = first <= header.base_offset and header.last_offset < end
        if batch.records_count is not None and is_inside:
            count += batch.records_count
        else:
            count += sum(first <= offset < end for offset in batch.columns().offsets)
    return count
