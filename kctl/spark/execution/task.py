"""What a worker runs: one task, from pieces of partitions to files in staging."""

from dataclasses import replace
from pathlib import Path

from kctl.spark.planning.plan import ExportTask, Piece
from kctl.spark.planning.settings import OnGap, TaskSettings
from kctl.spark.publishing.staging import Staging
from kctl.spark.reading.gaps import Gaps
from kctl.spark.reading.pieces import connected, piece_tables
from kctl.spark.writing.content import columns_to_read
from kctl.spark.writing.output import OutputFiles
from kctl.spark.writing.results import PartitionCount, TaskResult


def run_task(task: ExportTask, settings: TaskSettings) -> TaskResult:
    """Run a task unless another attempt has finished it; leaves no files if it fails."""
    staging = Staging(Path(settings.staging))
    if (done := staging.result(task.index)) is not None:
        return done
    with staging.attempt(task.index) as directory, connected(settings):
        sink = OutputFiles(directory, f"part-{task.index:05d}", settings)
        try:
            counts = [_export_piece(piece, settings, sink) for piece in task.pieces]
        except BaseException:
            sink.abandon()
            raise
        files = sink.close()
        return staging.finish(directory, TaskResult(task.index, tuple(counts), tuple(files)))


def _export_piece(piece: Piece, settings: TaskSettings, sink: OutputFiles) -> PartitionCount:
    count = PartitionCount(piece.topic, piece.partition)
    gaps = Gaps(is_skipped=settings.on_gap is OnGap.SKIP)
    for table, size_bytes in piece_tables(piece, settings, columns_to_read(settings), gaps):
        count = count.plus(replace(sink.write(piece, table), size_bytes=size_bytes))
    return replace(count, gaps=tuple(gaps.found))
