"""Log directories as a source; works without a running broker, for example on a rescued disk.

A partition is read up to its log end offset, not to its high watermark: the checkpoint of the high
watermark is some seconds old, and after a crash these seconds matter. With read_committed it is
read up to the last stable offset, as by a consumer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from broker.errors import CorruptRecord
from broker.log.checkpoints import read_offsets
from broker.log.layout import LOG_START_OFFSET_CHECKPOINT, parse_partition_dir
from broker.model import TopicPartition
from broker.records.batch import Batch, check_crc
from broker.records.layout import CURRENT_MAGIC
from kctl.cli.errors import CliError, ExitStatus
from kctl.dump.reading.readers import corrupt_batch, open_records
from kctl.spark.planning.origin import Origin
from kctl.spark.planning.plan import OffsetRange, Piece
from kctl.spark.reading.gaps import Gaps
from kctl.spark.reading.log_partition import LogPartition, Segment


class LogDirectorySource:
    """Partitions of log directories; of several replicas the one with the longest log is used."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._logs: dict[TopicPartition, LogPartition] = {}
        for directory in directories:
            for log in _find_logs(directory):
                known = self._logs.get(log.partition)
                if known is None or known.log_end_offset < log.log_end_offset:
                    self._logs[log.partition] = log

    def partitions(self) -> list[TopicPartition]:
        """All partitions."""
        return sorted(self._logs)

    def whole_ranges(
        self, partitions: Iterable[TopicPartition], *, is_committed: bool
    ) -> list[OffsetRange]:
        """The offsets of each partition, from log start to visible end, pinned now."""
        return [self._whole_range(self._logs[each], is_committed) for each in partitions]

    def pin(self, ranges: Iterable[OffsetRange], *, is_committed: bool) -> None:
        """Nothing to do: pieces are found in the files."""

    def _whole_range(self, log: LogPartition, is_committed: bool) -> OffsetRange:
        end = log.last_stable_offset if is_committed else log.log_end_offset
        return OffsetRange(*log.partition, min(log.log_start_offset, end), end)

    def offsets_at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition at that time or later; else its end."""
        return {each: self._logs[each].offset_at_time(timestamp) for each in partitions}

    def origin(self, partitions: Iterable[TopicPartition]) -> Origin:
        """The ids in meta.properties and partition.metadata, and the latest leader epochs."""
        logs = [self._logs[each] for each in partitions]
        return Origin(
            next((log.cluster_id for log in logs if log.cluster_id), None),
            {log.partition.topic: log.topic_id for log in logs if log.topic_id},
            {str(log.partition): log.epochs[-1].epoch for log in logs if log.epochs},
        )

    def held_back(self, ranges: Iterable[OffsetRange]) -> dict[TopicPartition, int]:
        """How many offsets lie between the last stable offset and the log end."""
        ends = {
            each.topic_partition: each.end_offset
            for each in ranges
            if each.end_offset == self._logs[each.topic_partition].last_stable_offset
        }
        return {
            partition: self._logs[partition].log_end_offset - end
            for partition, end in ends.items()
            if self._logs[partition].log_end_offset > end
        }

    def epoch_end_offsets(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The end offsets of leader epochs; partitions without an epoch checkpoint are omitted."""
        return {
            partition: self._logs[partition].epoch_end_offset(epoch)
            for partition, epoch in epochs.items()
            if self._logs[partition].epochs
        }

    def pieces(self, offsets: OffsetRange, task_bytes: int) -> Iterator[Piece]:
        """Split a range into parts of files, none much larger than `task_bytes`."""
        log = self._logs[offsets.topic_partition]
        for segment in log.segments:
            following = segment.next_base_offset
            is_before = following is not None and following <= offsets.first_offset
            if is_before or segment.base_offset >= offsets.end_offset:
                continue
            for position, end, span_first, span_end in _spans(segment, offsets, task_bytes):
                first_offset = max(offsets.first_offset, span_first)
                end_offset = min(offsets.end_offset, span_end)
                yield Piece(
                    *log.partition,
                    first_offset,
                    end_offset,
                    end - position,
                    str(segment.path.absolute()),
                    position,
                    tuple(log.aborted(first_offset, end_offset)),
                )
            segment.release()


def _find_logs(directory: Path) -> Iterator[LogPartition]:
    if parse_partition_dir(directory.absolute().name) and any(directory.glob("*.log")):
        raise CliError(
            f"{directory}: is the directory of one partition",
            f"--from-dir {directory.absolute().parent}",
            ExitStatus.USAGE,
        )
    try:
        log_start_offsets = read_offsets(directory / LOG_START_OFFSET_CHECKPOINT)
        for path in sorted(directory.iterdir()):
            partition = parse_partition_dir(path.name)
            # Directories marked -delete, -future or -stray have a longer name.
            if partition and path.name == str(partition) and path.is_dir():
                yield LogPartition(path, partition, log_start_offsets.get(partition, 0))
    except OSError as error:
        raise CliError(
            f"{error.filename or directory}: {(error.strerror or str(error)).lower()}",
            "--from-dir takes a log directory of a broker (log.dirs)",
        ) from error


def _spans(
    segment: Segment, offsets: OffsetRange, task_bytes: int
) -> Iterator[tuple[int, int, int, int]]:
    """(position, end position, first offset, end offset) of the parts of a segment.

    They consist of whole batches and cover the wanted offsets; the first and last batch may also
    contain other offsets.
    """
    start = _first_position(segment, offsets.first_offset)
    end = _end_position(segment, offsets.end_offset)
    if start >= end:
        return
    cuts = [(start, segment.base_offset), *_cuts(segment, start, end, task_bytes)]
    last_end = segment.next_base_offset or offsets.end_offset
    for (position, first), (until, following) in zip(
        cuts, [*cuts[1:], (end, last_end)], strict=True
    ):
        yield position, until, first, following


def _first_position(segment: Segment, offset: int) -> int:
    position = next((at for at, _ in segment.headers_from(offset)), segment.records.size)
    return position if offset > segment.base_offset else 0


def _end_position(segment: Segment, offset: int) -> int:
    """The end of the last batch that may contain offsets below `offset`."""
    if segment.next_base_offset is not None and segment.next_base_offset <= offset:
        return segment.records.size
    end = segment.records.size  # if compaction removed the last offsets of the segment
    for position, header in segment.headers_from(offset - 1):
        # Compressed messages of old formats have only their last offset: they may begin below.
        is_old = header.magic < CURRENT_MAGIC
        if header.base_offset >= offset and not is_old:
            return position
        end = position + header.size_in_bytes
        if header.last_offset >= offset - 1:
            return end
    return end


def _cuts(segment: Segment, start: int, end: int, task_bytes: int) -> Iterator[tuple[int, int]]:
    """(position, offset) of batches to split at, from the offset index, each checked."""
    wanted = start + task_bytes
    while wanted < end - task_bytes // 2:
        entry = segment.entry_beyond(wanted)
        if entry is None or not wanted <= entry[1] < end:
            return
        position = entry[1]
        batch = segment.sound_batch(position)
        if batch is None or batch.magic < CURRENT_MAGIC:  # fewer splits, the same records
            return
        yield position, batch.header.base_offset
        wanted = position + task_bytes


def read_piece(piece: Piece, gaps: Gaps) -> Iterator[Batch]:
    """The batches of a part of a file, with their CRCs checked.

    CorruptRecord names the file and position of damaged or missing bytes.
    """
    path = Path(piece.path)
    end = piece.position + piece.size_bytes
    reached = piece.position
    try:
        records = open_records(path)
    except FileNotFoundError:  # the broker has deleted the segment
        partition = TopicPartition(piece.topic, piece.partition)
        gaps.note(partition, piece.first_offset, piece.end_offset)
        return
    for position, batch in records.batches(piece.position):
        if position >= end:
            break
        try:
            check_crc(batch)
        except CorruptRecord as error:
            raise corrupt_batch(path, position, error) from None
        yield batch
        reached = position + batch.size_in_bytes
    if reached != end:
        raise CorruptRecord(f"{path} position {reached}: expected batches up to {end}, found none")
