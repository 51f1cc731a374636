"""`.snapshot` files: a log's producer state just before an offset (format in `layout`)."""

from collections.abc import Iterable
from pathlib import Path
from struct import error as StructError  # noqa: N812 - an exception, whatever struct calls it
from typing import NamedTuple

from broker.errors import CorruptRecord
from broker.log.files import FileSystem
from broker.log.layout import SNAPSHOT_CRC_END, SNAPSHOT_ENTRY, SNAPSHOT_HEADER, SNAPSHOT_VERSION
from broker.records.checksum import crc32c


class SnapshotEntry(NamedTuple):
    """One producer, in the order of the bytes; -1 stands for what it does not have."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """The file's bytes, the crc included."""
    packed = [SNAPSHOT_ENTRY.pack(*entry) for entry in entries]
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return SNAPSHOT_HEADER.pack(SNAPSHOT_VERSION, crc32c(body), len(packed)) + body[4:]


def decode_snapshot(data: bytes, path: Path) -> list[SnapshotEntry]:
    """The producers; CorruptRecord names the file, expected and found."""
    try:
        version, crc, count = SNAPSHOT_HEADER.unpack_from(data)
    except StructError:
        raise CorruptRecord(
            f"{path}: expected at least {SNAPSHOT_HEADER.size} bytes, found {len(data)}"
        ) from None
    if version != SNAPSHOT_VERSION:
        raise CorruptRecord(f"{path}: expected version {SNAPSHOT_VERSION}, found {version}")
    if crc != (computed := crc32c(data[SNAPSHOT_CRC_END:])):
        raise CorruptRecord(f"{path}: expected crc {crc}, found {computed}")
    body = data[SNAPSHOT_HEADER.size :]
    if len(body) != count * SNAPSHOT_ENTRY.size:
        raise CorruptRecord(f"{path}: expected {count} producers, found {len(body)} bytes of them")
    return [SnapshotEntry(*fields) for fields in SNAPSHOT_ENTRY.iter_unpack(body)]


def write_snapshot(
    path: Path, entries: Iterable[SnapshotEntry], fs: FileSystem, *, sync: bool
) -> None:
    """Write the file; not atomically, because the crc reveals a partial write."""
    fs.write_file(path, encode_snapshot(entries), sync=sync)


def read_snapshot(path: Path) -> list[SnapshotEntry]:
    """The producers of the file; CorruptRecord if it is damaged."""
    return decode_snapshot(path.read_bytes(), path)
