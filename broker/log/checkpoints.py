"""The small text files: offset checkpoints, leader epochs, meta.properties, partition.metadata.

All but the clean-shutdown marker are replaced atomically (temporary file, fsync, rename, fsync of
the directory), so a crash leaves the old content or the new. A malformed file raises
CorruptCheckpoint, which names file, line and what was expected; the callers decide what follows.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from broker.log.files import FileSystem
from broker.log.layout import CLEAN_SHUTDOWN_FILE, META_PROPERTIES_FILE, PARTITION_METADATA_FILE
from broker.model import TopicPartition, Uuid

CHECKPOINT_VERSION = 0

_PARTITION_METADATA_REMEDY = (
    "delete the file if the topic was not deleted and created again since, or else the directory; "
    "then restart the broker"
)
_META_PROPERTIES_REMEDY = (
    "restore the file from another log directory of this broker, or write version=0, broker.id and "
    "cluster.id into it"
)


class CorruptCheckpoint(OSError):
    """A small file that cannot be read; the message names file, expected, found and the remedy."""


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written in it."""

    epoch: int
    start_offset: int


def _write_lines(path: Path, lines: list[str], fs: FileSystem) -> None:
    text = "\n".join([str(CHECKPOINT_VERSION), str(len(lines)), *lines, ""])
    fs.replace_file(path, text.encode())


def _read_text(path: Path, remedy: str) -> list[str]:
    """The lines of a file; CorruptCheckpoint, with the remedy, if they are not text."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(
            f"{path}: expected text, found {error.reason} at byte {error.start}: {remedy}"
        ) from error


def _read_lines(path: Path) -> list[str]:
    """The entries; empty if the file is missing or empty, as in Kafka."""
    try:
        lines = _read_text(path, "delete the file, it is written again")
    except FileNotFoundError:
        return []
    if lines and lines[0] != str(CHECKPOINT_VERSION):
        raise CorruptCheckpoint(f"{path} line 1: expected version 0, found {lines[0]!r}")
    if len(lines) < 2:
        return []
    if not lines[1].isdigit() or int(lines[1]) != len(lines) - 2:
        raise CorruptCheckpoint(
            f"{path} line 2: expected the number of entries, {len(lines) - 2}, found {lines[1]!r}"
        )
    return lines[2:]


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int], fs: FileSystem) -> None:
    """Write an offset checkpoint, one partition per line."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    _write_lines(path, lines, fs)


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint file; empty if it does not exist."""
    offsets = {}
    for number, line in enumerate(_read_lines(path), start=3):
        try:
            topic, partition, offset = line.split()
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise CorruptCheckpoint(
                f"{path} line {number}: expected `topic partition offset`, found {line!r}"
            ) from None
    return offsets


def write_epochs(path: Path, epochs: Iterable[EpochEntry], fs: FileSystem) -> None:
    """Write `leader-epoch-checkpoint`."""
    _write_lines(path, [f"{entry.epoch} {entry.start_offset}" for entry in epochs], fs)


def read_epochs(path: Path) -> list[EpochEntry]:
    """The entries of `leader-epoch-checkpoint`; empty if it does not exist."""
    epochs = []
    for number, line in enumerate(_read_lines(path), start=3):
        try:
            epoch, start_offset = map(int, line.split())
        except ValueError:
            raise CorruptCheckpoint(
                f"{path} line {number}: expected `epoch offset`, found {line!r}"
            ) from None
        epochs.append(EpochEntry(epoch, start_offset))
    return epochs


def write_partition_metadata(directory: Path, topic_id: Uuid, fs: FileSystem) -> None:
    """Write the partition's `partition.metadata`."""
    text = f"version: 0\ntopic_id: {topic_id}"
    fs.replace_file(directory / PARTITION_METADATA_FILE, text.encode())


def read_partition_metadata(directory: Path) -> Uuid | None:
    """The topic id; None if the file does not exist."""
    path = directory / PARTITION_METADATA_FILE
    try:
        lines = _read_text(path, _PARTITION_METADATA_REMEDY)
    except FileNotFoundError:
        return None
    if not lines:  # a crash before the content was written
        return None
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    if fields.get("version") != "0":
        found = f"expected `version: 0`, found {lines[0]!r}"
        raise CorruptCheckpoint(f"{path}: {found}: {_PARTITION_METADATA_REMEDY}")
    try:
        return Uuid.parse(fields.get("topic_id", ""))
    except ValueError as error:
        raise CorruptCheckpoint(f"{path}: {error}: {_PARTITION_METADATA_REMEDY}") from error


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The broker and cluster of a log directory. Version 0 is that of ZooKeeper clusters.

    `others` holds the keys of newer versions (`directory.id`), which are kept.
    """

    broker_id: int | None
    cluster_id: str | None
    version: int = 0
    others: tuple[tuple[str, str], ...] = ()


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """The directory's `meta.properties`; None if file or directory does not exist."""
    path = directory / META_PROPERTIES_FILE
    try:
        lines = _read_text(path, _META_PROPERTIES_REMEDY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    split = (line.partition("=") for line in lines if not line.startswith("#"))
    pairs = {key.strip(): value.strip() for key, equals, value in split if equals}
    try:
        version, broker_id = int(pairs.pop("version", "")), pairs.pop("broker.id", None)
        owner = None if broker_id is None else int(broker_id)
    except ValueError as error:
        raise CorruptCheckpoint(
            f"{path}: expected a version and broker.id: {error}: {_META_PROPERTIES_REMEDY}"
        ) from error
    return MetaProperties(owner, pairs.pop("cluster.id", None), version, tuple(pairs.items()))


def write_meta_properties(
    directory: Path, properties: MetaProperties, now_ms: int, fs: FileSystem
) -> None:
    """Write `meta.properties` as Java writes properties: a comment, the date, the pairs."""
    date = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    pairs: list[tuple[str, object]] = [("version", properties.version), *properties.others]
    if properties.broker_id is not None:
        pairs.insert(0, ("broker.id", properties.broker_id))
    if properties.cluster_id is not None:
        pairs.append(("cluster.id", properties.cluster_id))
    lines = ["#", f"#{date}", *(f"{key}={value}" for key, value in pairs), ""]
    fs.replace_file(directory / META_PROPERTIES_FILE, "\n".join(lines).encode())


def write_clean_shutdown(directory: Path, broker_epoch: int, fs: FileSystem) -> None:
    """Write the marker: every log of the directory was closed and flushed."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    fs.write_file(directory / CLEAN_SHUTDOWN_FILE, content.encode(), sync=True)


def take_clean_shutdown(directory: Path, fs: FileSystem) -> bool:
    """Remove the marker until the next clean shutdown; returns whether it existed.

    Its content is not used: markers before Kafka 3.8 were empty.
    """
    path = directory / CLEAN_SHUTDOWN_FILE
    if not path.exists():
        return False
    fs.remove(path)
    return True
