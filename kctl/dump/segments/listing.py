"""The segments of a partition directory, and when retention deletes them.

The rules are those of `broker.log.retention`, which are Kafka's: whole segments go from the front,
first those before the log start offset, then those beyond retention.bytes, then those whose newest
record is older than retention.ms. The broker looks every log.retention.check.interval.ms (5 minutes
by default), so a segment is deleted a little later than shown here.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broker.log.checkpoints import read_offsets
from broker.log.layout import (
    LOG_START_OFFSET_CHECKPOINT,
    OFFSET_INDEX,
    TIME_INDEX,
    parse_partition_dir,
)
from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.dump.reading.files import DumpFile, FileKind, find_files
from kctl.dump.reading.readers import (
    count_offset_entries,
    last_time_entry,
    open_offset_index,
    open_records,
    open_time_index,
)


@dataclass(frozen=True)
class Retention:
    """The settings that decide when segments are deleted; None if they are unknown."""

    retention_ms: int | None = None
    retention_bytes: int | None = None
    is_deleted: bool = True
    """Whether cleanup.policy contains delete."""


@dataclass(frozen=True)
class Segment:
    """A segment on disk."""

    partition: TopicPartition
    path: Path
    base_offset: int
    last_offset: int | None
    """None if it has no batches."""
    size_bytes: int
    index_bytes: int
    """Of all its indexes."""
    first_ms: int | None
    last_ms: int | None
    """The largest timestamp of its records."""
    is_active: bool


@dataclass(frozen=True)
class Expiry:
    """When a segment may be deleted, and by which rule; both None if it is kept."""

    at_ms: int | None = None
    reason: str | None = None


def log_files(directory: Path) -> dict[TopicPartition, list[DumpFile]]:
    """The .log files of each partition in the directory, by base offset; CliError if none."""
    if not directory.is_dir():
        raise CliError(f"no such directory: {directory}", "use a partition or log directory")
    found: dict[TopicPartition, list[DumpFile]] = {}
    for file in find_files([str(directory)], {FileKind.LOG}):
        if not isinstance(file, DumpFile):
            raise file
        place = parse_partition_dir(file.path.absolute().parent.name)
        if place is not None:
            found.setdefault(place, []).append(file)
    if not found:
        raise CliError(
            f"{directory}: no partition directory", "its name is TOPIC-PARTITION, e.g. orders-0"
        )
    return {place: sorted(files, key=lambda one: one.base_offset) for place, files in found.items()}


def read_segments(partition: TopicPartition, files: Sequence[DumpFile]) -> list[Segment]:
    """The segments of one partition, oldest first, without those deleted while they are read."""
    last = files[-1].base_offset
    found = []
    for file in files:
        with suppress(FileNotFoundError):  # a running broker renames it before it deletes it
            found.append(_segment(partition, file, is_active=file.base_offset == last))
    return found


def _segment(partition: TopicPartition, file: DumpFile, *, is_active: bool) -> Segment:
    records = open_records(file.path)
    first = next(records.batches(), None)
    last_offset, last_ms = None, _last_indexed_ms(file)
    for _, batch in records.batches(_last_indexed_position(file)):
        last_offset = batch.last_offset
        last_ms = max(last_ms, batch.max_timestamp)
    return Segment(
        partition,
        file.path,
        file.base_offset,
        last_offset,
        file.path.stat().st_size,
        sum(one.stat().st_size for one in file.path.parent.glob(f"{file.path.stem}.*index")),
        first[1].header.base_timestamp if first else None,
        last_ms if last_ms >= 0 else None,
        is_active,
    )


def _last_indexed_position(file: DumpFile) -> int:
    """Where to read from to reach the end quickly."""
    path = file.sibling(OFFSET_INDEX)
    if not path.is_file():
        return 0
    index = open_offset_index(path, file.base_offset)
    count = count_offset_entries(index)
    position = index.entry(count - 1).position if count else 0
    return position if position < file.path.stat().st_size else 0


def _last_indexed_ms(file: DumpFile) -> int:
    path = file.sibling(TIME_INDEX)
    if not path.is_file():
        return -1
    entry = last_time_entry(open_time_index(path, file.base_offset))
    return entry.timestamp if entry else -1


def log_start_offset(partition: TopicPartition, files: Sequence[DumpFile]) -> int:
    """The log start offset of the checkpoint; the first base offset if it has none."""
    path = files[0].path.absolute().parent.parent / LOG_START_OFFSET_CHECKPOINT
    known = read_offsets(path) if path.is_file() else {}
    return max(known.get(partition, 0), files[0].base_offset)


def expiries(segments: Sequence[Segment], start_offset: int, rule: Retention) -> list[Expiry]:
    """When each segment may be deleted; no segment is deleted before the older ones."""
    surplus = sum(one.size_bytes for one in segments) - (rule.retention_bytes or 0)
    has_limit = rule.retention_bytes is not None and rule.retention_bytes >= 0
    found: list[Expiry] = []
    earlier_ms: int | None = 0
    for number, segment in enumerate(segments):
        follower = segments[number + 1] if number + 1 < len(segments) else None
        own = Expiry()
        if follower and follower.base_offset <= start_offset:
            own = Expiry(0, "log start offset")
        elif rule.is_deleted and has_limit and surplus >= segment.size_bytes > 0:
            own = Expiry(0, "retention.bytes")
        elif rule.is_deleted and (rule.retention_ms or -1) >= 0 and segment.last_ms is not None:
            own = Expiry(segment.last_ms + (rule.retention_ms or 0), "retention.ms")
        surplus -= segment.size_bytes
        if own.at_ms is None or earlier_ms is None:
            own, earlier_ms = Expiry(), None
        else:
            earlier_ms = max(earlier_ms, own.at_ms)
            own = Expiry(earlier_ms, own.reason)
        found.append(own)
    return found
