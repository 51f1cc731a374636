"""Which files an argument stands for: a file, a directory (partition or log directory), a glob."""

import glob
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
from kctl.errors import CliError


class FileKind(StrEnum):
    """What a file of a log directory holds; also what `--kind` takes."""

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
ALL_KINDS: Final = frozenset(FileKind)


@dataclass(frozen=True)
class DumpFile:
    """One file to read."""

    path: Path
    kind: FileKind
    base_offset: int = 0
    """The offset that the name says; 0 for files that are not named by one."""
    is_named: bool = True
    """Whether the user named this very file, rather than a directory it is in."""

    def sibling(self, suffix: str) -> Path:
        """The file of the same segment with another suffix."""
        return self.path.with_name(self.path.name.partition(".")[0] + suffix)


Found = DumpFile | CliError
"""A file, or what is wrong with an argument: one bad argument does not spoil the others."""


def find_files(
    arguments: Iterable[str], kinds: Collection[FileKind] = ALL_KINDS
) -> Iterator[Found]:
    """What the arguments stand for, in their order; `kinds` is what directories are asked for."""
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
            yield CliError(f"{argument}: no file matches")
        for match in matches:
            yield from _find(glob.escape(match) if glob.has_magic(match) else match, kinds)


def _named(path: Path) -> Found:
    if not path.exists():
        return CliError(f"{path}: no such file")
    if not path.is_file():
        return CliError(f"{path}: neither a file nor a directory")
    return recognise(path)


def recognise(path: Path, *, is_named: bool = True) -> Found:
    """The file with its kind, told by its name; nothing is opened."""
    if path.name in _BY_NAME:
        return DumpFile(path, _BY_NAME[path.name], 0, is_named)
    name = path.name
    for mark in (DELETED, SWAP, CLEANED):
        name = name.removesuffix(mark)
    stem, dot, suffix = name.rpartition(".")
    kind = _BY_SUFFIX.get(dot + suffix)
    if kind is None:
        known = ", ".join([*_BY_SUFFIX, *_BY_NAME])
        return CliError(f"{path}: not a file of a Kafka log", f"these are read: {known}")
    if not (stem.isascii() and stem.isdigit()):
        return CliError(f"{path}: expected a base offset as name, found {stem!r}")
    return DumpFile(path, kind, int(stem), is_named)


def _in_directory(directory: Path, kinds: Collection[FileKind]) -> Iterator[Found]:
    """Its own files first, then those of the partitions in it."""
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        yield CliError(f"{directory}: {error.strerror}")
        return
    found = list(_known_files(entries, kinds))
    partitions = [path for path in entries if parse_partition_dir(path.name) and path.is_dir()]
    if not found and not partitions:
        yield CliError(f"{directory}: no log files in this directory")
    yield from found
    for partition in partitions:
        yield from _in_directory(partition, kinds)


def _known_files(entries: Sequence[Path], kinds: Collection[FileKind]) -> Iterator[DumpFile]:
    for path in entries:
        file = recognise(path, is_named=False)
        if isinstance(file, DumpFile) and file.kind in kinds and path.is_file():
            yield file
