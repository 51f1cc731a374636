"""The files of a log directory: names, suffixes and binary formats of Kafka 3.9, defined once.

    <log dir>/
      .lock                             locked by the broker that uses the directory
      .kafka_cleanshutdown              {"version":0,"brokerEpoch":-1}, only after a clean shutdown
      meta.properties                   version, broker.id, cluster.id
      recovery-point-offset-checkpoint  ⎫
      replication-offset-checkpoint     ⎪ text: "0", number of lines, `topic partition offset`
      log-start-offset-checkpoint       ⎬
      cleaner-offset-checkpoint         ⎭
      <topic>-<partition>/
        <base offset, 20 digits>.log        record batches, one after the other
        <base offset>.index                 offset index, see OFFSET_ENTRY
        <base offset>.timeindex             time index, see TIME_ENTRY
        <base offset>.txnindex              aborted transactions, see ABORTED_TXN; often missing
        <offset>.snapshot                   producer state before that offset, see SNAPSHOT_HEADER
        leader-epoch-checkpoint             text: "0", number of lines, `epoch start-offset`
        partition.metadata                  text: `version: 0`, `topic_id: <uuid>`, no last newline

Suffixes after the names: `.cleaned` is being written by the cleaner, `.swap` is complete and about
to replace other segments, `.deleted` waits for its deletion. Directories:
`<topic>-<partition>.<uuid>-delete`, `-future` and `-stray`.
"""

import re
import struct
import uuid
from pathlib import Path

from broker.model import TopicPartition

# Offset index: relative offset of the *last* record of a batch, position of that batch in the file.
OFFSET_ENTRY = struct.Struct(">ii")
# Time index: largest timestamp so far, relative offset of the last record of the batch that has it.
TIME_ENTRY = struct.Struct(">qi")
# Transaction index: version 0, producer id, first and last offset, last stable offset at its end.
ABORTED_TXN = struct.Struct(">hqqqq")
# Producer snapshot: version 1, crc-32c of all that follows the crc, number of entries.
SNAPSHOT_HEADER = struct.Struct(">hIi")
# One producer: id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch,
# first offset of its open transaction (-1 if none).
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")

assert OFFSET_ENTRY.size == 8  # noqa: S101 - the formats, held at import
assert TIME_ENTRY.size == 12  # noqa: S101
assert ABORTED_TXN.size == 34  # noqa: S101
assert SNAPSHOT_HEADER.size == 10  # noqa: S101
assert SNAPSHOT_ENTRY.size == 46  # noqa: S101

ABORTED_TXN_VERSION = 0
SNAPSHOT_VERSION = 1
SNAPSHOT_CRC_END = 6  # the crc covers everything after itself

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_FILES = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"

DELETE_DIR = "-delete"
FUTURE_DIR = "-future"
STRAY_DIR = "-stray"

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
META_PROPERTIES_FILE = "meta.properties"
PARTITION_METADATA_FILE = "partition.metadata"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"

MAX_RELATIVE_OFFSET = 2**31 - 1
_MAX_NAME_LENGTH = 255
_OFFSET_NAME = re.compile(r"(\d{20})(\.[a-z]+)((?:\.[a-z]+)?)")
_MARKED_DIR = re.compile(r"(\S+)\.(\S+)-(?:delete|future|stray)")


def offset_file(directory: Path, offset: int, kind: str, suffix: str = "") -> Path:
    """The path of `kind` (`.log`, `.snapshot`, …) for a base offset, in Kafka's 20 digits."""
    return directory / f"{offset:020d}{kind}{suffix}"


def parse_offset_file(name: str) -> tuple[int, str, str] | None:
    """(offset, kind, suffix) of a file name such as `00…042.index.swap`; None for other files."""
    match = _OFFSET_NAME.fullmatch(name)
    return (int(match[1]), match[2], match[3]) if match else None


def parse_partition_dir(name: str) -> TopicPartition | None:
    """The partition whose log a directory holds, marked or not; None for other directories."""
    marked = _MARKED_DIR.fullmatch(name)
    if marked is None and name.endswith((DELETE_DIR, FUTURE_DIR, STRAY_DIR)):
        return None
    topic, dash, partition = (marked[1] if marked else name).rpartition("-")
    if not (topic and dash and partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(topic, int(partition))


def marked_dir_name(partition: TopicPartition, mark: str) -> str:
    """`<topic>-<partition>.<uuid><mark>`; a long topic name is cut to fit NAME_MAX."""
    suffix = f"-{partition.partition}.{uuid.uuid4().hex}{mark}"
    return partition.topic[: _MAX_NAME_LENGTH - len(suffix)] + suffix
