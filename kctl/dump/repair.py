"""Save a damaged log: its sound part into a new directory, with everything derived built anew.

The logs are copied and then recovered by the broker's own recovery: every batch is checked, the log
is cut at the first damage, indexes, snapshots and epochs are made from the batches. The damaged
directory is only read. What the new one lacks is told in full.
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
from kctl.dump.check import CHECKPOINTS, partition_directories
from kctl.dump.readers import open_records
from kctl.errors import CliError
from kctl.tables import Column

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
class _How:
    """What was asked for."""

    config: LogConfig
    keep_later: bool


@dataclass(frozen=True)
class Repair:
    """One thing done to one file."""

    action: str
    """`kept`, `cut` (from `position` on), `dropped` or `rebuilt`."""
    file: Path
    reason: str
    position: int | None = None
    bytes: int | None = None
    """How many bytes the new directory has (kept) or lacks (cut, dropped)."""
    first_offset: int | None = None
    last_offset: int | None = None
    """The offsets of those bytes, as far as their batches can be read."""

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


def repair_directory(
    source: Path, target: Path, config: LogConfig, *, keep_later: bool = False
) -> Iterator[Repair]:
    """Make `target` of what is sound in `source`, a partition's or a log directory.

    With `keep_later` segments behind a damaged one are kept as far as they are sound; else the log
    ends at the first damage, as a broker would end it.
    CliError if `target` has something in it or lies inside `source`.
    """
    _check_target(source, target)
    how = _How(config, keep_later)
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
        raise CliError(f"{target}: inside of {source}", "nothing is written to a damaged directory")


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
    source: Path, target: Path, start: int, how: "_How"
) -> tuple[list[Repair], int]:
    """What was done, and the new log end offset."""
    target.mkdir(parents=True, exist_ok=True)
    done = list(_copy(source, target))
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
    done += _compare(source, target, reasons)
    return done, end


def _copy(source: Path, target: Path) -> Iterator[Repair]:
    """Copy the logs and what cannot be made from them, as far as it can be read."""
    for path in sorted(source.iterdir()):
        parsed = parse_offset_file(path.name)
        problem = ""
        if path.name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA_FILE) or (
            parsed and parsed[1:] == (SNAPSHOT, "")
        ):
            problem = _problem(path)
        elif not parsed or parsed[1:] != (LOG, ""):
            if parsed and not parsed[2]:
                continue  # an index, which is built anew
            problem = "no part of the log"
        if problem:
            yield Repair("dropped", path, problem, None, path.stat().st_size)
        else:
            shutil.copyfile(path, target / path.name)


def _problem(path: Path) -> str:
    """Why a file cannot be used; empty if it can."""
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

    Recovery takes a segment without indexes for one that lost them, mends it by itself and keeps
    what follows; only segments that it finds complete are recovered as one log.
    """
    for path in list(target.glob(f"*{LOG}")):
        path.with_suffix(OFFSET_INDEX).touch()
        path.with_suffix(TIME_INDEX).touch()


class _Reasons(logging.Handler):
    """Hears why recovery cuts a segment, which it tells its log only."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._by_segment: dict[str, str] = {}
        self._logger = logging.getLogger("broker.log")

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is said about a damage."""
        match record.args:
            case (Path() as path, int(), CorruptRecord() as error):
                self._by_segment[path.name] = str(error).rpartition(": ")[2]

    def of(self, segment: Path) -> str:
        """Why the segment was cut; where recovery is silent, its last batch was not whole."""
        return self._by_segment.get(segment.name, "no whole batch")

    def __enter__(self) -> None:
        self._logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)


def _compare(source: Path, target: Path, reasons: _Reasons) -> Iterator[Repair]:
    """Every segment of the old directory: all of it there, a part, or nothing."""
    for path in sorted(source.glob(f"*{LOG}")):
        if not parse_offset_file(path.name):
            continue
        size, kept = path.stat().st_size, _size(target / path.name)
        if kept:
            yield Repair("kept", path, "sound", 0, kept, *_offsets(path, 0, kept))
        if kept < size:
            action = "cut" if kept else "dropped"
            reason = reasons.of(path) if kept else "it follows the damage"
            yield Repair(action, path, reason, kept, size - kept, *_offsets(path, kept, size))
    built = sum(1 for path in target.iterdir() if path.suffix in (OFFSET_INDEX, TIME_INDEX))
    yield Repair("rebuilt", target, f"{built} indexes, snapshots, epochs")


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
    """The checkpoints, none beyond the end of its log, and who owns the directory."""
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
