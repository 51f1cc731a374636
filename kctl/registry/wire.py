"""Confluent's wire format: magic byte 0, schema id (int32, big-endian), payload.

A Protobuf payload begins with the path to its message type: the index of the top-level message,
then of the message nested in it, and so on. The path is written as zigzag varints, its length
first; the frequent path [0] is the single byte 0.
"""

import struct
from collections.abc import Sequence
from typing import Final

from kctl.registry.schemas import UndecodableValue

MAGIC: Final = 0
_PREFIX: Final = struct.Struct(">bi")
_MAX_VARINT_BITS: Final = 35
FIRST_MESSAGE: Final = (0,)


def split_value(data: bytes) -> tuple[int, bytes]:
    """The schema id and the payload; UndecodableValue if `data` has no such prefix."""
    if len(data) < _PREFIX.size or data[0] != MAGIC:
        raise UndecodableValue("it does not begin with the magic byte 0 and a schema id")
    _, schema_id = _PREFIX.unpack_from(data)
    return schema_id, data[_PREFIX.size :]


def join_value(schema_id: int, payload: bytes) -> bytes:
    """The bytes of a value whose schema is `schema_id`."""
    return _PREFIX.pack(MAGIC, schema_id) + payload


def split_indexes(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """The path to the message type, and the message."""
    count, at = _read_varint(payload, 0)
    if count == 0:
        return FIRST_MESSAGE, payload[at:]
    if not 0 < count <= len(payload):
        raise UndecodableValue(f"{count} message indexes are not possible")
    indexes = []
    for _ in range(count):
        index, at = _read_varint(payload, at)
        indexes.append(index)
    return tuple(indexes), payload[at:]


def join_indexes(indexes: Sequence[int], message: bytes) -> bytes:
    """A Protobuf payload: the path to the message type, then the message."""
    if tuple(indexes) == FIRST_MESSAGE:
        return b"\0" + message
    return b"".join(map(_write_varint, (len(indexes), *indexes))) + message


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint, and the position after it."""
    value = 0
    for shift in range(0, _MAX_VARINT_BITS, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise UndecodableValue("its message indexes are cut off or malformed")


def _write_varint(value: int) -> bytes:
    rest, out = (value << 1) ^ (value >> 31), bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
