"""Log directories as a source: no broker is asked, so it works on a dead one's disk too.

The end of a partition is the end of its log, not its high watermark: the checkpoint of that is
some seconds old, and on a disk that was saved those seconds are what one is after. With
read_committed it ends at the last stable offset, as for a consumer.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from broker.errors import CorruptRecord
from broker.log.checkpoints import read_offsets
from broker.log.layout import LOG_START_OFFSET_CHECKPOINT, parse_partition_dir
from broker.model import TopicPartition
from broker.records.batch import Batch, check_crc
from kctl.dump.readers import corrupt_batch, open_records
from kctl.errors import CliError
from kctl.spark.log_partition import LogPartition, Segment
from kctl.spark.plan import OffsetRange, Piece


class LogSource:
    """Partitions of log directories; of replicas of one, that with the longest log counts."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._logs: dict[TopicPartition, LogPartition] = {}
        for directory in directories:
            for log in _find_logs(directory):
                known = self._logs.get(log.partition)
                if known is None or known.log_end_offset < log.log_end_offset:
                    self._logs[log.partition] = log

    def partitions(self) -> list[TopicPartition]:
        """Every partition there is."""
        return sorted(self._logs)

    def whole_ranges(
        self, partitions: Iterable[TopicPartition], *, is_committed: bool
    ) -> list[OffsetRange]:
        """All that is there of each partition, pinned now."""
        return [self._whole_range(self._logs[each], is_committed) for each in partitions]

    def _whole_range(self, log: LogPartition, is_committed: bool) -> OffsetRange:
        end = log.last_stable_offset if is_committed else log.log_end_offset
        return OffsetRange(*log.partition, min(log.log_start_offset, end), end)

    def offsets_at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """Of each partition the first offset of that time or later; its end if there is none."""
        return {each: self._logs[each].offset_at_time(timestamp) for each in partitions}

    def pieces(self, offsets: OffsetRange, task_bytes: int) -> Iterator[Piece]:
        """The range as spans of files, none much larger than `task_bytes`."""
        log = self._logs[offsets.topic_partition]
        for segment in log.segments:
            following = segment.next_base_offset
            is_before = following is not None and following <= offsets.first_offset
            if is_before or segment.base_offset >= offsets.end_offset:
                continue
            for position, end, first_offset, end_offset in _spans(segment, offsets, task_bytes):
                yield Piece(
                    *log.partition,
                    max(offsets.first_offset, first_offset),
                    min(offsets.end_offset, end_offset),
                    end - position,
                    str(segment.path.absolute()),
                    position,
                    tuple(log.aborted(first_offset, end_offset)),
                )


def _find_logs(directory: Path) -> Iterator[LogPartition]:
    try:
        log_start_offsets = read_offsets(directory / LOG_START_OFFSET_CHECKPOINT)
        for path in sorted(directory.iterdir()):
            partition = parse_partition_dir(path.name)
            # Logs marked for deletion or not yet in use have a longer name.
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

    They begin and end with whole batches and cover the wanted offsets; a batch at either end may
    hold offsets outside.
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
    """Where the last batch ends that may hold offsets below `offset`."""
    if segment.next_base_offset is not None and segment.next_base_offset <= offset:
        return segment.records.size
    end = segment.position_before(offset - 1)
    for position, header in segment.records.headers(end):
        # Of a compressed message of old formats only the last offset is known: it may begin below.
        is_old = header.magic < 2
        if header.base_offset >= offset and not is_old:
            return position
        end = position + header.size_in_bytes
        if header.last_offset >= offset - 1:
            return end
    return end


def _cuts(segment: Segment, start: int, end: int, task_bytes: int) -> Iterator[tuple[int, int]]:
    """(position, offset) of batches to cut at, from the offset index, each of them looked at."""
    wanted = start + task_bytes
    while wanted < end - task_bytes // 2:
        slot = bisect_left(segment.index, wanted, key=lambda entry: entry[1])
        if slot == len(segment.index) or segment.index[slot][1] >= end:
            return
        position = segment.index[slot][1]
        batch = _sound_batch(segment, position)
        if batch is None:  # the index is wrong: fewer cuts, the same records
            return
        yield position, batch.header.base_offset
        wanted = position + task_bytes


def _sound_batch(segment: Segment, position: int) -> Batch | None:
    try:
        _, batch = next(segment.records.batches(position))
        check_crc(batch)
    except (CorruptRecord, StopIteration):
        return None
    return batch if batch.magic >= 2 else None


def read_piece(piece: Piece) -> Iterator[Batch]:
    """The batches of a span of a file, checked.

    CorruptRecord names file and position where bytes are damaged, or end before the span does.
    """
    path = Path(piece.path)
    end = piece.position + piece.size_bytes
    reached = piece.position
    for position, batch in open_records(path).batches(piece.position):
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
