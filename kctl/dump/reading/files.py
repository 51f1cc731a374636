"""Resolves arguments to files: a file, a partition or log directory, or a glob."""

import glob
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from broker.log.layout import (
    CLEANED,
    CLEANER_OFFSET_CHECKPOINT,
    DELETED,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES_FILE,
    OFFSET_INDEX,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    parse_partition_dir,
)
from kctl.cli.errors import CliError


class FileKind(StrEnum):
    """Kinds of files in a log directory; also the values of `--kind`."""

    LOG = "log"
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TXN_INDEX = "txnindex"
    SNAPSHOT = "snapshot"
    EPOCHS = "epochs"
    CHECKPOINT = "checkpoint"
    METADATA = "metadata"


_BY_SUFFIX: Final = {
    LOG: FileKind.LOG,
    OFFSET_INDEX: FileKind.OFFSET_INDEX,
    TIME_INDEX: FileKind.TIME_INDEX,
    TXN_INDEX: FileKind.TXN_INDEX,
    SNAPSHOT: FileKind.SNAPSHOT,
}
_BY_NAME: Final = {
    LEADER_EPOCH_CHECKPOINT: FileKind.EPOCHS,
    RECOVERY_POINT_CHECKPOINT: FileKind.CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT: FileKind.CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT: FileKind.CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT: FileKind.CHECKPOINT,
    META_PROPERTIES_FILE: FileKind.METADATA,
    PARTITION_METADATA_FILE: FileKind.METADATA,
}
_READ: Final = (*_BY_SUFFIX, "the checkpoints", META_PROPERTIES_FILE, PARTITION_METADATA_FILE)
_MARKS: Final = (DELETED, SWAP, CLEANED)
KRAFT_SNAPSHOT: Final = re.compile(r"(?:([0-9]{20})-([0-9]{10})|bootstrap)\.checkpoint")
"""Snapshot of a KRaft metadata log, with its end offset and epoch: batches, as in a segment."""
ALL_KINDS: Final = frozenset(FileKind)


@dataclass(frozen=True)
class DumpFile:
    """One file to read."""

    path: Path
    kind: FileKind
    base_offset: int = 0
    """The base offset in the name; 0 for files without one."""
    is_named: bool = True
    """Whether the file itself was given, not a directory that contains it."""

    def sibling(self, suffix: str) -> Path:
        """The file of the same segment with another suffix."""
        return self.path.with_name(self.path.name.partition(".")[0] + suffix)


class Unusable(CliError):
    """An argument that cannot be used, and why."""

    def __init__(self, argument: str | Path, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument


Found = DumpFile | Unusable
"""A file, or an error: one bad argument does not affect the others."""


def find_files(
    arguments: Iterable[str], kinds: Collection[FileKind] = ALL_KINDS
) -> Iterator[Found]:
    """The files of the arguments, in order; of directories only these `kinds`."""
    for argument in arguments:
        yield from _find(argument, kinds)


def _find(argument: str, kinds: Collection[FileKind]) -> Iterator[Found]:
    path = Path(argument)
    if path.is_dir():
        yield from _in_directory(path, kinds)
    elif path.exists() or not glob.has_magic(argument):
        yield _named(path)
    else:
        matches = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207 - of any root
        if not matches:
            yield Unusable(argument, "no file matches")
        for match in matches:
            yield from _find(glob.escape(match) if glob.has_magic(match) else match, kinds)


def _named(path: Path) -> Found:
    if not path.exists():
        return Unusable(path, "no such file")
    if not path.is_file():
        return Unusable(path, "neither a file nor a directory")
    return recognise(path)


def recognise(path: Path, *, is_named: bool = True) -> Found:
    """The file with its kind, determined by its name; nothing is opened."""
    if path.name in _BY_NAME:
        return DumpFile(path, _BY_NAME[path.name], 0, is_named)
    name = path.name
    for mark in _MARKS:
        name = name.removesuffix(mark)
    stem, dot, suffix = name.rpartition(".")
    # Only by name: in a directory it would count as a segment, but it repeats the log.
    if is_named and (found := KRAFT_SNAPSHOT.fullmatch(name)):
        return DumpFile(path, FileKind.LOG, int(found[1] or 0), is_named)
    kind = _BY_SUFFIX.get(dot + suffix)
    if kind is None:
        return Unusable(path, f"not a file of a Kafka log; supported are {', '.join(_READ)}")
    if not (stem.isascii() and stem.isdigit()):
        return Unusable(path, f"expected a base offset as file name, found {stem!r}")
    return DumpFile(path, kind, int(stem), is_named)


def _in_directory(directory: Path, kinds: Collection[FileKind]) -> Iterator[Found]:
    """The files of the directory, then those of its partitions."""
    is_empty = True
    for found in _walk(directory, kinds):
        is_empty = False
        yield found
    if is_empty:
        yield Unusable(directory, "no log files in this directory")


def _walk(directory: Path, kinds: Collection[FileKind]) -> Iterator[Found]:
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        yield Unusable(directory, (error.strerror or str(error)).lower())
        return
    yield from _known_files(entries, kinds)
    for path in entries:
        if parse_partition_dir(path.name) and path.is_dir():
            yield from _walk(path, kinds)


def _known_files(entries: Sequence[Path], kinds: Collection[FileKind]) -> Iterator[DumpFile]:
    """The files that make up the log, segment by segment: first the log, then its indexes.

    Files with a suffix after their kind are not part of it: `.deleted` files wait for
    file.delete.delay.ms, `.cleaned` and `.swap` files repeat segments. They can be given by name.
    """
    known = (recognise(path, is_named=False) for path in entries if path.suffix not in _MARKS)
    files = (file for file in known if isinstance(file, DumpFile) and file.kind in kinds)
    yield from sorted((file for file in files if file.path.is_file()), key=_log_first)


def _log_first(file: DumpFile) -> tuple[str, int]:
    """Sort key: by name up to the suffix, then in the order of FileKind."""
    return file.path.name.partition(".")[0], list(FileKind).index(file.kind)
