"""Varints and other helpers of the compiled codecs.

Readers are `(buffer, position) -> (value, position after)`. They raise IndexError or ValueError;
`codec` turns that into a DecodeError which names the field.
"""

import struct
from collections.abc import Callable
from typing import Any, Protocol

Buffer = bytes | bytearray | memoryview


class FileSlice(Protocol):
    """Record bytes that are still in a file, so that a plaintext connection can `sendfile` them."""

    @property
    def position(self) -> int:
        """Their position in the file."""
        ...

    def __len__(self) -> int: ...

    def fileno(self) -> int:
        """The file's descriptor, open as long as this lives."""
        ...

    def read(self) -> bytes:
        """The bytes themselves."""
        ...


Records = Buffer | FileSlice
"""Record batches in a message: a view of the frame if decoded, any of these to be encoded."""

Part = Records
"""A part of an encoded message. Records stay the object that they were: they are not copied."""

INT32_MAX = 0x7FFFFFFF

MAX_STRING_BYTES = 0x7FFF
"""The longest string; Kafka refuses longer ones also where the length is a varint."""


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint: a length or a tag, so never above INT32_MAX."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise ValueError("unsigned varint longer than 5 bytes")
    if value > INT32_MAX:
        raise ValueError(f"unsigned varint {value} exceeds {INT32_MAX}")
    return value, position


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_CACHED_LENGTHS = 64  # replica lists are short; for long arrays the format is compiled each time


class _ByLength(dict[int, Callable[..., Any]]):
    """Struct methods for arrays of fixed-size elements, by number of elements."""

    def __init__(self, prefix: str, letter: str, method: str) -> None:
        super().__init__()
        self._prefix, self._letter, self._method = prefix, letter, method

    def __missing__(self, count: int) -> Callable[..., Any]:
        compiled = struct.Struct(f">{self._prefix}{count}{self._letter}")
        found: Callable[..., Any] = getattr(compiled, self._method)
        if count <= _CACHED_LENGTHS:
            self[count] = found
        return found


def array_unpackers(letter: str) -> _ByLength:
    """`array_unpackers("i")[n](buffer, position)` reads n int32s as a tuple."""
    return _ByLength("", letter, "unpack_from")


def array_packers(prefix: str, letter: str) -> _ByLength:
    """`array_packers("B", "i")[n](length, *values)` writes a one-byte length and n int32s."""
    return _ByLength(prefix, letter, "pack")
