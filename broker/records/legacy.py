"""Message formats 0 and 1: read from old logs and producers, written for old consumers.

An uncompressed message is one record. A compressed message is a wrapper: its value is a compressed
set of messages, its offset is that of the last of them. The offsets inside are absolute in format 0
and relative in format 1: absolute = wrapper's offset - last inner offset + inner offset. So a
wrapper must be decompressed completely before anything in it can be used.
"""

import zlib
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from broker.errors import CorruptRecord
from broker.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, compress, decompress
from broker.records.layout import (
    CODEC_MASK,
    LEGACY_ATTRIBUTES_POSITION,
    LEGACY_CRC_POSITION,
    LEGACY_TIMESTAMP_POSITION,
    LOG_ENTRY,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MESSAGE_V0,
    MESSAGE_V1,
    MIN_SIZE_BY_MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    BytesLike,
    Codec,
    TimestampType,
)
from broker.records.record import RecordColumns, RecordTuple

_LENGTH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_TIMESTAMP: Final = Struct(">q")
_FIXED: Final = (MESSAGE_V0, MESSAGE_V1)
_NULL_LENGTH: Final = _LENGTH.pack(-1)


class InvalidMessageSet(CorruptRecord):
    """A wrapper whose codec, value or inner messages are not allowed, whatever their crcs."""


class _Message(NamedTuple):
    """The positions of one message in its buffer; a length of -1 is null."""

    start: int
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key_start: int
    key_length: int
    value_start: int
    value_length: int
    end: int


def read_columns(
    message: BytesLike,
    max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    check_inner_crcs: bool = False,
) -> RecordColumns:
    """The records of one whole message: itself, or what it wraps.

    The caller checks the message's own crc; crcs and formats of the messages inside are
    checked on request only, as in Kafka: for messages from producers, not for those read from
    the log.
    """
    data = bytes(message)
    outer = _read_message(data, 0)
    codec = outer.attributes & CODEC_MASK
    if codec == Codec.NONE:
        return _fill(data, [outer])
    inner_data = _unwrap(data, outer, codec, max_bytes)
    messages = _read_message_set(inner_data, check_inner_crcs)
    if check_inner_crcs and any(message.magic != outer.magic for message in messages):
        raise InvalidMessageSet(f"a message of format {outer.magic} wraps another format")
    return _fill(inner_data, _with_wrapper(outer, messages))


def read_crcs(
    message: BytesLike, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> list[tuple[int, int]]:
    """The stored and the computed crc of each record of one whole message."""
    data = bytes(message)
    outer = _read_message(data, 0)
    codec = outer.attributes & CODEC_MASK
    if codec == Codec.NONE:
        return [_crcs(data, outer)]
    inner_data = _unwrap(data, outer, codec, max_bytes)
    return [_crcs(inner_data, inner) for inner in _read_message_set(inner_data, False)]


def _unwrap(data: bytes, outer: _Message, codec: int, max_bytes: int) -> bytes:
    if codec >= Codec.ZSTD:
        raise InvalidMessageSet(f"format {outer.magic}: expected a codec of 0 to 3, found {codec}")
    if outer.value_length < 0:
        raise InvalidMessageSet(f"format {outer.magic}: a compressed message has a null value")
    value = data[outer.value_start : outer.value_start + outer.value_length]
    return decompress(Codec(codec), value, max_bytes, outer.magic)


def _read_message_set(data: bytes, check_crcs: bool) -> list[_Message]:
    """The messages in `data`; one cut short by the end is left out, as in Kafka."""
    messages = []
    position = 0
    while len(data) - position >= LOG_OVERHEAD:
        _, size = LOG_ENTRY.unpack_from(data, position)
        if size < MIN_SIZE_BY_MAGIC[0]:
            raise CorruptRecord(
                f"inner message at {position}: expected a size of at least "
                f"{MIN_SIZE_BY_MAGIC[0]}, found {size}"
            )
        if len(data) - position < LOG_OVERHEAD + size:
            break
        message = _read_message(data, position)
        if message.attributes & CODEC_MASK:
            raise InvalidMessageSet(f"inner message at {position} is itself compressed")
        stored, computed = _crcs(data, message) if check_crcs else (0, 0)
        if stored != computed:
            raise CorruptRecord(
                f"inner message at {position}: expected crc {stored}, found {computed}"
            )
        messages.append(message)
        position = message.end
    if not messages:
        raise InvalidMessageSet("a compressed message holds no messages")
    return messages


def _read_message(data: bytes, position: int) -> _Message:
    """The message at `position`, which must be whole."""
    offset, size = LOG_ENTRY.unpack_from(data, position)
    end = position + LOG_OVERHEAD + size
    magic = data[position + MAGIC_POSITION]
    if magic > 1 or size < MIN_SIZE_BY_MAGIC[magic]:
        raise CorruptRecord(
            f"message at {position}: expected format 0 of at least {MIN_SIZE_BY_MAGIC[0]} bytes "
            f"or 1 of {MIN_SIZE_BY_MAGIC[1]}, found format {magic} of {size}"
        )
    timestamp = NO_TIMESTAMP
    if magic == 1:
        (timestamp,) = _TIMESTAMP.unpack_from(data, position + LEGACY_TIMESTAMP_POSITION)
    key_start, key_length = _read_span(data, position + _FIXED[magic].size, end)
    value_start, value_length = _read_span(data, key_start + max(key_length, 0), end)
    attributes = data[position + LEGACY_ATTRIBUTES_POSITION]
    return _Message(
        start=position,
        offset=offset,
        magic=magic,
        attributes=attributes,
        timestamp=timestamp,
        key_start=key_start,
        key_length=key_length,
        value_start=value_start,
        value_length=value_length,
        end=end,
    )


def _read_span(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Where the bytes after the length at `position` start, and that length."""
    room = end - position - _LENGTH.size
    length = _LENGTH.unpack_from(data, position)[0] if room >= 0 else room
    if not -1 <= length <= room or room < 0:
        raise CorruptRecord(
            f"message ending at {end}: expected a length of -1 to {room} at {position}, "
            f"found {length}"
        )
    return position + _LENGTH.size, length


def _crcs(data: bytes, message: _Message) -> tuple[int, int]:
    (stored,) = _CRC.unpack_from(data, message.start + LEGACY_CRC_POSITION)
    with memoryview(data) as view:
        return stored, zlib.crc32(view[message.start + MAGIC_POSITION : message.end])


def _with_wrapper(outer: _Message, messages: list[_Message]) -> list[_Message]:
    """The inner messages with absolute offsets, and the wrapper's timestamp if LogAppendTime."""
    base_offset = 0
    # A wrapper at offset 0 comes from a producer; some do not number the inner messages.
    if outer.magic == 1 and outer.offset != 0:
        base_offset = outer.offset - messages[-1].offset
        if base_offset < 0:
            raise CorruptRecord(
                f"expected a wrapper offset of at least {messages[-1].offset}, found {outer.offset}"
            )
    is_append_time = outer.magic == 1 and outer.attributes & TIMESTAMP_TYPE_MASK
    return [
        message._replace(
            offset=base_offset + message.offset,
            timestamp=outer.timestamp if is_append_time and message.magic else message.timestamp,
        )
        for message in messages
    ]


def _fill(data: bytes, messages: Sequence[_Message]) -> RecordColumns:
    columns = RecordColumns(data, len(messages))
    for index, message in enumerate(messages):
        if not -(2**63) <= message.offset < 2**63:
            raise CorruptRecord(f"expected an offset of 64 bits, found {message.offset}")
        columns.offsets[index] = message.offset
        columns.timestamps[index] = message.timestamp
        columns.key_starts[index] = message.key_start
        columns.key_lengths[index] = message.key_length
        columns.value_starts[index] = message.value_start
        columns.value_lengths[index] = message.value_length
    return columns


def build_messages(
    records: Iterable[RecordTuple],
    magic: int,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_time: int = NO_TIMESTAMP,
) -> bytes:
    """The records as messages of format 0 or 1: one each, or all in one wrapper with a codec.

    Fields that the format lacks (headers, in 0 also timestamps) are left out. Empty if there are
    no records. Relative offsets count from the first record.
    """
    rows = list(records)
    if not rows:
        return b""
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        rows = [(offset, append_time, *rest) for offset, _, *rest in rows]  # type: ignore[misc]
    if codec == Codec.NONE:
        return b"".join(_build_message(row, magic, timestamp_type) for row in rows)
    base_offset = rows[0][0] if magic == 1 else 0
    inner = b"".join(
        _build_message((row[0] - base_offset, *row[1:]), magic, timestamp_type) for row in rows
    )
    max_timestamp = max(NO_TIMESTAMP, *(row[1] for row in rows))
    wrapper = (rows[-1][0], max_timestamp, None, compress(codec, inner, magic=magic), ())
    return _build_message(wrapper, magic, timestamp_type, codec)


def _build_message(
    record: RecordTuple, magic: int, timestamp_type: TimestampType, codec: Codec = Codec.NONE
) -> bytes:
    offset, timestamp, key, value, _ = record
    attributes: int = codec
    if magic == 1 and timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    fields = bytes([magic, attributes])
    if magic == 1:
        fields += _TIMESTAMP.pack(timestamp)
    body = b"".join((fields, _span(key), _span(value)))
    size = _CRC.size + len(body)
    return b"".join((LOG_ENTRY.pack(offset, size), _CRC.pack(zlib.crc32(body)), body))


def _span(data: bytes | None) -> bytes:
    return _NULL_LENGTH if data is None else _LENGTH.pack(len(data)) + data
