"""`dump-log repair`: copies the undamaged part of a log to a new directory.

The segments are copied and then recovered by the broker's own recovery: every batch is checked, the
log is truncated at the first damaged batch, and indexes, snapshots and leader epochs are rebuilt.
The damaged directory is only read. Everything that is missing in the new directory is reported.
"""

import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.errors import CorruptRecord
from broker.log.checkpoints import (
    CorruptCheckpoint,
    read_epochs,
    read_offsets,
    read_partition_metadata,
    write_offsets,
)
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.files import DISK
from broker.log.layout import (
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES_FILE,
    OFFSET_INDEX,
    PARTITION_METADATA_FILE,
    SNAPSHOT,
    TIME_INDEX,
    parse_offset_file,
    parse_partition_dir,
)
from broker.log.producer_snapshot import read_snapshot
from broker.log.recovery import LoadFrom, load_log
from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.cli.tables import Column
from kctl.dump.checking.directory import CHECKPOINTS, partition_directories
from kctl.dump.checking.salvage import parts_of
from kctl.dump.reading.readers import open_records

REPAIR_COLUMNS: Final = [
    Column("action"),
    Column("file"),
    Column("position", right=True),
    Column("bytes", right=True),
    Column("first_offset", "FIRST", right=True),
    Column("last_offset", "LAST", right=True),
    Column("reason"),
]

_UNREADABLE: Final = (CorruptRecord, CorruptCheckpoint)


@dataclass(frozen=True)
class RepairOptions:
    """Settings of a repair."""

    config: LogConfig
    keep_later: bool = False
    """Keep undamaged parts of segments after a damaged one."""
    skip_damaged: bool = False
    """Keep every undamaged batch, also those after a damaged one of the same segment."""


@dataclass(frozen=True)
class Repair:
    """One action on one file."""

    action: str
    """`kept`, `cut` (from `position` on), `dropped` or `rebuilt`."""
    file: Path
    reason: str
    position: int | None = None
    bytes: int | None = None
    """Number of bytes kept, cut or dropped."""
    first_offset: int | None = None
    last_offset: int | None = None
    """The offsets in those bytes, as far as their batches can be read."""

    def row(self) -> dict[str, object]:
        """For every format."""
        return {
            "action": self.action,
            "file": str(self.file),
            "position": self.position,
            "bytes": self.bytes,
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "reason": self.reason,
        }


def repair_directory(source: Path, target: Path, how: RepairOptions) -> Iterator[Repair]:
    """Copy the undamaged part of `source`, a partition or log directory, to `target`.

    Without options the log ends at the first damage, as a broker would truncate it.
    CliError if `target` is not empty or lies inside `source`.
    """
    _check_target(source, target)
    partitions = partition_directories(source)
    if partitions == [source]:
        start = _log_start_offset(source.absolute().parent, _partition_of(source))
        yield from _repair_partition(source, target, start, how)[0]
        return
    ends: dict[TopicPartition, int] = {}
    for directory in partitions:
        partition = _partition_of(directory)
        start = _log_start_offset(source, partition)
        done, ends[partition] = _repair_partition(directory, target / directory.name, start, how)
        yield from done
    yield from _copy_checkpoints(source, target, ends)


def _check_target(source: Path, target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CliError(f"{target}: not empty", "a repair writes to a new directory only")
    if target.resolve().is_relative_to(source.resolve()):
        raise CliError(f"{target}: inside {source}", "nothing is written to a damaged directory")


def _partition_of(directory: Path) -> TopicPartition:
    partition = parse_partition_dir(directory.absolute().name)
    return partition or TopicPartition(directory.absolute().name, 0)


def _log_start_offset(log_dir: Path, partition: TopicPartition) -> int:
    try:
        return read_offsets(log_dir / LOG_START_OFFSET_CHECKPOINT).get(partition, 0)
    except CorruptCheckpoint:
        return 0


# --- one partition -----------------------------------------------------------------------------


def _repair_partition(
    source: Path, target: Path, start: int, how: RepairOptions
) -> tuple[list[Repair], int]:
    """The actions, and the new log end offset."""
    target.mkdir(parents=True, exist_ok=True)
    done = list(_copy(source, target, skip_damaged=how.skip_damaged))
    if not how.keep_later:
        _add_empty_indexes(target)
    partition = _partition_of(source)
    load_from = LoadFrom(is_clean=False, log_start_offset=start, recovery_point=0)
    reasons = _Reasons()
    with reasons:
        log = load_log(target, partition, how.config, LogEnvironment(), load_from)
    end = log.log_end_offset
    log.flush(include_active=True)
    log.close()
    done += _skipped(source, target) if how.skip_damaged else _compare(source, target, reasons)
    built = sum(1 for path in target.iterdir() if path.suffix in (OFFSET_INDEX, TIME_INDEX))
    done.append(Repair("rebuilt", target, f"{built} indexes, snapshots, epochs"))
    return done, end


def _copy(source: Path, target: Path, *, skip_damaged: bool) -> Iterator[Repair]:
    """Copy segments and files that cannot be rebuilt from them, if readable."""
    for path in sorted(source.iterdir()):
        parsed = parse_offset_file(path.name)
        problem = ""
        if path.name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA_FILE) or (
            parsed and parsed[1:] == (SNAPSHOT, "")
        ):
            problem = _problem(path)
        elif not parsed or parsed[1:] != (LOG, ""):
            if parsed and not parsed[2]:
                continue  # an index, which is rebuilt
            problem = "not part of the log"
        if problem:
            yield Repair("dropped", path, problem, None, path.stat().st_size)
        elif skip_damaged and path.suffix == LOG:
            with (target / path.name).open("wb") as copy:
                copy.writelines(part.data for part in parts_of(path) if part.is_sound)
        else:
            shutil.copyfile(path, target / path.name)


def _problem(path: Path) -> str:
    """Why a file cannot be used; empty if it can be used."""
    try:
        if path.name == LEADER_EPOCH_CHECKPOINT:
            read_epochs(path)
        elif path.name == PARTITION_METADATA_FILE:
            read_partition_metadata(path.parent)
        else:
            read_snapshot(path)
    except _UNREADABLE as error:
        return str(error).removeprefix(f"{path}").lstrip(": ")
    return ""


def _add_empty_indexes(target: Path) -> None:
    """Make the segments look complete.

    Recovery repairs a segment without indexes by itself and keeps the following segments; only
    segments with index files are recovered as one log.
    """
    for path in list(target.glob(f"*{LOG}")):
        path.with_suffix(OFFSET_INDEX).touch()
        path.with_suffix(TIME_INDEX).touch()


class _Reasons(logging.Handler):
    """Collects the reasons why recovery truncates segments, which it only logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._by_segment: dict[str, str] = {}
        self._logger = logging.getLogger("broker.log")

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a logged error."""
        match record.args:
            case (Path() as path, int(), CorruptRecord() as error):
                self._by_segment[path.name] = str(error).rpartition(": ")[2]

    def of(self, segment: Path) -> str:
        """Why the segment was truncated; if nothing was logged, its last batch was incomplete."""
        return self._by_segment.get(segment.name, "incomplete batch")

    def __enter__(self) -> None:
        self._logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)


def _compare(source: Path, target: Path, reasons: _Reasons) -> Iterator[Repair]:
    """What was kept of every segment: all, a part, or nothing."""
    for path in sorted(source.glob(f"*{LOG}")):
        if not parse_offset_file(path.name):
            continue
        size, kept = path.stat().st_size, _size(target / path.name)
        if kept:
            yield Repair("kept", path, "sound", 0, kept, *_offsets(path, 0, kept))
        if kept < size:
            action = "cut" if kept else "dropped"
            reason = reasons.of(path) if kept else "after the damage"
            yield Repair(action, path, reason, kept, size - kept, *_offsets(path, kept, size))


def _skipped(source: Path, target: Path) -> Iterator[Repair]:
    """What was kept and left out of every segment, part by part."""
    for path in sorted(source.glob(f"*{LOG}")):
        if not parse_offset_file(path.name):
            continue
        is_copied = (target / path.name).exists()
        for part in parts_of(path):
            kept = part.is_sound and is_copied
            reason = "sound" if part.is_sound else part.reason
            yield Repair(
                "kept" if kept else "dropped",
                path,
                reason,
                part.position,
                len(part.data),
                part.first_offset,
                part.last_offset,
            )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _offsets(path: Path, start: int, end: int) -> tuple[int | None, int | None]:
    """First and last offset of the batches in a part of a file that can be read."""
    first = last = None
    try:
        for position, batch in open_records(path).batches(start):
            if position >= end:
                break
            first = batch.header.base_offset if first is None else first
            last = batch.last_offset
    except CorruptRecord:
        return first, last
    return first, last


# --- the log directory ---------------------------------------------------------------------------


def _copy_checkpoints(
    source: Path, target: Path, ends: dict[TopicPartition, int]
) -> Iterator[Repair]:
    """Copy meta.properties and the checkpoints, limited to the new log end offsets."""
    if (source / META_PROPERTIES_FILE).exists():
        shutil.copyfile(source / META_PROPERTIES_FILE, target / META_PROPERTIES_FILE)
    for name in CHECKPOINTS:
        path = source / name
        if not path.exists():
            continue
        try:
            offsets = read_offsets(path)
        except CorruptCheckpoint as error:
            yield Repair("dropped", path, str(error), None, path.stat().st_size)
            continue
        known = {key: min(offset, ends[key]) for key, offset in offsets.items() if key in ends}
        write_offsets(target / name, known, DISK)
        yield Repair("rebuilt", target / name, f"{len(known)} partitions")
