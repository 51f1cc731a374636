"""Builds batches of format 2, byte for byte as Kafka's own builder writes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from broker.records.batch import Batch
from broker.records.checksum import crc32c
from broker.records.compression import compress, decompressed
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CONTROL_MASK,
    CURRENT_MAGIC,
    DELETE_HORIZON_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAX_INT32,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BytesLike,
    Codec,
    TimestampType,
)
from broker.records.record import Header, RecordTuple

_NULL_LENGTH: Final = b"\x01"
_NO_ATTRIBUTES: Final = b"\x00"


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The header fields of a batch; the defaults are those of a producer without idempotence."""

    codec: Codec = Codec.NONE
    # None: Kafka's default for the codec.
    compression_level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    # The timestamp of every record; used only with LOG_APPEND_TIME.
    append_time: int = NO_TIMESTAMP
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    # Set by the cleaner; takes the place of the base timestamp in the header.
    delete_horizon_ms: int | None = None

    def attributes(self) -> int:
        """The attributes field of the header."""
        append_time = self.timestamp_type == TimestampType.LOG_APPEND_TIME
        return (
            self.codec
            | (TIMESTAMP_TYPE_MASK if append_time else 0)
            | (TRANSACTIONAL_MASK if self.is_transactional else 0)
            | (CONTROL_MASK if self.is_control else 0)
            | (DELETE_HORIZON_MASK if self.delete_horizon_ms is not None else 0)
        )


PLAIN: Final = BatchSettings()


def build_batch(
    records: Iterable[RecordTuple],
    settings: BatchSettings = PLAIN,
    base_offset: int | None = None,
    last_offset: int | None = None,
) -> bytes:
    """One batch with these records, at least one, in the order of their offsets.

    `base_offset` and `last_offset` are for a batch that lost records at its ends to compaction,
    which keeps both; otherwise they are those of the first and the last record. ValueError if
    offsets do not increase, a timestamp is negative, or the producer fields are inconsistent.
    """
    rows = list(records)
    first = rows[0][0] if base_offset is None else base_offset
    last = rows[-1][0] if last_offset is None else last_offset
    _check(rows, settings, first, last)
    horizon = settings.delete_horizon_ms
    base_timestamp = rows[0][1] if horizon is None else horizon
    max_timestamp = max(NO_TIMESTAMP, *(row[1] for row in rows))
    data = encode_records(rows, first, base_timestamp)
    return _assemble(settings, first, last, (base_timestamp, max_timestamp), len(rows), data)


def recompress(
    batch: Batch, base_offset: int, max_timestamp: int, settings: BatchSettings
) -> bytes | None:
    """The batch with the same records in another codec, without decoding them.

    The same bytes as `build_batch` with its records, which must be sequential and as Kafka writes
    them (`scan_records` with `check_form`). None if the first record does not have the base
    timestamp: then all timestamp deltas change. ValueError if the producer fields are inconsistent.
    """
    header = batch.header
    last_offset = base_offset + header.last_offset_delta
    _check((), settings, base_offset, last_offset)
    timestamps = header.base_timestamp, max(max_timestamp, NO_TIMESTAMP)
    count = header.records_count
    with decompressed(batch.codec, batch.view[HEADER_SIZE:]) as records:
        if not _starts_with_delta_zero(records):
            return None
        return _assemble(settings, base_offset, last_offset, timestamps, count, records)


def _starts_with_delta_zero(records: memoryview) -> bool:
    """Whether the timestamp delta of the first record is 0: after its length and attributes."""
    position = 0
    while records[position] >= 0x80:
        position += 1
    return records[position + 2] == 0


def build_empty_batch(
    base_offset: int, last_offset: int, max_timestamp: int, settings: BatchSettings = PLAIN
) -> bytes:
    """What the cleaner keeps of a batch without records whose sequence numbers are still needed.

    It is never compressed and has no base timestamp.
    """
    plain = replace(settings, codec=Codec.NONE, compression_level=None, delete_horizon_ms=None)
    return _assemble(plain, base_offset, last_offset, (NO_TIMESTAMP, max_timestamp), 0, b"")


def _assemble(
    settings: BatchSettings,
    base_offset: int,
    last_offset: int,
    timestamps: tuple[int, int],
    count: int,
    data: BytesLike,
) -> bytes:
    base_timestamp, max_timestamp = timestamps
    if settings.timestamp_type == TimestampType.LOG_APPEND_TIME and count:
        max_timestamp = settings.append_time
    payload = compress(settings.codec, data, settings.compression_level)
    fields = (
        settings.attributes(),
        last_offset - base_offset,
        base_timestamp,
        max_timestamp,
        settings.producer_id,
        settings.producer_epoch,
        settings.base_sequence,
        count,
    )
    length = HEADER_SIZE - LOG_OVERHEAD + len(payload)
    prefix = (base_offset, length, settings.partition_leader_epoch, CURRENT_MAGIC)
    # The crc is computed over the rest of the header, then over the payload, without a copy.
    crc = crc32c(HEADER.pack(*prefix, 0, *fields)[ATTRIBUTES_POSITION:])
    crc = crc32c(payload, crc)
    return HEADER.pack(*prefix, crc, *fields) + payload


def _check(rows: Sequence[RecordTuple], settings: BatchSettings, first: int, last: int) -> None:
    previous = first - 1
    for offset, timestamp, *_ in rows:
        if offset <= previous:
            raise ValueError(f"offset {offset} follows offset {previous}")
        if timestamp < NO_TIMESTAMP:
            raise ValueError(f"negative timestamp {timestamp} at offset {offset}")
        previous = offset
    if last < previous or last - first > MAX_INT32:
        raise ValueError(f"no batch can span the offsets {first} to {last}, with {previous}")
    if settings.is_transactional and settings.producer_id == NO_PRODUCER_ID:
        raise ValueError("a transactional batch needs a producer id")
    if settings.producer_id != NO_PRODUCER_ID:
        if settings.producer_epoch == NO_PRODUCER_EPOCH:
            raise ValueError(f"producer id {settings.producer_id} has no epoch")
        if settings.base_sequence < 0 and not settings.is_control:
            raise ValueError(f"producer id {settings.producer_id} has no sequence")


def encode_records(records: Iterable[RecordTuple], base_offset: int, base_timestamp: int) -> bytes:
    """The records section of a batch, not compressed."""
    parts: list[bytes] = []
    for offset, timestamp, key, value, headers in records:
        delta = _wrap_int64(timestamp - base_timestamp)
        fields = [_NO_ATTRIBUTES, varint(delta), varint(offset - base_offset)]
        fields += _spans(key, value)
        fields.append(varint(len(headers)))
        for header in headers:
            fields += _header_spans(header)
        body = b"".join(fields)
        parts += (varint(len(body)), body)
    return b"".join(parts)


def _spans(*spans: bytes | None) -> Iterable[bytes]:
    for span in spans:
        if span is None:
            yield _NULL_LENGTH
        else:
            yield varint(len(span))
            yield span


def _header_spans(header: Header) -> Iterable[bytes]:
    key, value = header
    return _spans(key.encode("utf-8", "replace"), value)  # a lone surrogate becomes "?", as in Java


def _wrap_int64(value: int) -> int:
    """Deltas between extreme int64 values wrap, and wrap back when they are added."""
    return (value + 2**63) % 2**64 - 2**63


def varint(value: int) -> bytes:
    """`value`, of 32 or 64 bits, as a zigzag varint."""
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return _ONE_BYTE[raw]
    encoded = bytearray()
    while raw > 0x7F:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


_ONE_BYTE: Final = [bytes([raw]) for raw in range(0x80)]
