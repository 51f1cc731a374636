"""The small text files: offset checkpoints, leader epochs, meta.properties, partition.metadata.

All but the clean-shutdown marker are exchanged at once (temporary file, fsync, rename, fsync of the
directory), so a crash leaves the old content or the new. A malformed file raises CorruptCheckpoint
that names file, line and what was expected; the callers decide what a lost checkpoint costs.
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


class CorruptCheckpoint(OSError):
    """A checkpoint file that cannot be read; the message names file, expected and found.

    An OSError: where nobody knows better, its directory goes offline as with a disk that fails.
    """


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written in it."""

    epoch: int
    start_offset: int


def _write_lines(path: Path, lines: list[str], fs: FileSystem) -> None:
    text = "\n".join([str(CHECKPOINT_VERSION), str(len(lines)), *lines, ""])
    fs.replace_file(path, text.encode())


def _read_lines(path: Path) -> list[str]:
    """The entries; none where the file is missing or empty, as Kafka reads it."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path}: expected text, found {error.reason}") from error
    if len(lines) < 2:
        return []
    if lines[0] != str(CHECKPOINT_VERSION):
        raise CorruptCheckpoint(f"{path} line 1: expected version 0, found {lines[0]!r}")
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
    """The offsets of a checkpoint file; none where there is no file."""
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
    """The entries of `leader-epoch-checkpoint`; none where there is no file."""
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
    """The topic's id; None where there is no file."""
    path = directory / PARTITION_METADATA_FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    if not lines:  # a crash came before what was to be written
        return None
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    if fields.get("version") != "0":
        raise CorruptCheckpoint(f"{path}: expected `version: 0`, found {lines[:1]}")
    try:
        return Uuid.parse(fields.get("topic_id", ""))
    except ValueError as error:
        raise CorruptCheckpoint(f"{path}: {error}") from error


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Who owns a log directory. Version 0 is that of ZooKeeper clusters.

    `others` holds the keys of newer versions (`directory.id`), which are kept as they are.
    """

    broker_id: int | None
    cluster_id: str | None
    version: int = 0
    others: tuple[tuple[str, str], ...] = ()


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """The directory's `meta.properties`; None where there is no file, or no directory."""
    path = directory / META_PROPERTIES_FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    split = (line.partition("=") for line in lines if not line.startswith("#"))
    pairs = {key.strip(): value.strip() for key, equals, value in split if equals}
    try:
        version, broker_id = int(pairs.pop("version", "")), pairs.pop("broker.id", None)
        owner = None if broker_id is None else int(broker_id)
    except ValueError as error:
        raise CorruptCheckpoint(f"{path}: expected a version and broker.id: {error}") from error
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
    """Leave the marker: every log of the directory was closed and flushed."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    fs.write_file(directory / CLEAN_SHUTDOWN_FILE, content.encode(), sync=True)


def take_clean_shutdown(directory: Path, fs: FileSystem) -> bool:
    """Whether the marker was there; it is gone afterwards, until the next clean stop.

    What is in it does not matter: markers before Kafka 3.8 were empty.
    """
    path = directory / CLEAN_SHUTDOWN_FILE
    if not path.exists():
        return False
    fs.remove(path)
    return True
