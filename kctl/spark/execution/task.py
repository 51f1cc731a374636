"""What a Spark worker runs: one task, from pieces of partitions to files in staging."""

from pathlib import Path

import pyarrow as pa

from kctl.spark.planning.plan import ExportTask, Piece
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.publishing.staging import Staging
from kctl.spark.reading.pieces import piece_tables
from kctl.spark.writing.content import columns_to_read
from kctl.spark.writing.output import OutputFiles
from kctl.spark.writing.results import PartitionCount, TaskResult


def run_task(task: ExportTask, settings: TaskSettings) -> TaskResult:
    """Run a task unless another attempt has finished it; leaves no files if it fails."""
    staging = Staging(Path(settings.staging))
    if (done := staging.result(task.index)) is not None:
        return done
    with staging.attempt(task.index) as directory:
        sink = OutputFiles(directory, f"part-{task.index:05d}", settings)
        try:
            counts = [_export_piece(piece, settings, sink) for piece in task.pieces]
        finally:
            files = sink.close()
        return staging.finish(directory, TaskResult(task.index, tuple(counts), tuple(files)))


def _export_piece(piece: Piece, settings: TaskSettings, sink: OutputFiles) -> PartitionCount:
    count = PartitionCount(piece.topic, piece.partition)
    for table, size_bytes in piece_tables(piece, settings, columns_to_read(settings)):
        count = count.plus(count_table(piece, table, sink.write(piece, table), size_bytes))
    return count


def count_table(piece: Piece, table: pa.Table, undecodable: int, size_bytes: int) -> PartitionCount:
    """The counts of a non-empty table with the column `offset`."""
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
