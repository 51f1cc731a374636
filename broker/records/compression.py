"""The four codecs, in the framings that Kafka's clients write and expect.

gzip    one member, as zlib makes it.
snappy  Kafka's own framing (the one of the Java library "xerial"): a header of 16 bytes, then
        blocks of a 4-byte length and raw snappy. Some clients send raw snappy without it: read too.
lz4     the LZ4 frame: independent blocks of 64 KB, no checksum but the descriptor's. In format 0
        that checksum was taken over the wrong bytes, so it is written wrong and not looked at.
zstd    a plain frame; Kafka allows it in format 2 only.

Decompression never makes more than the caller allows, whatever the bytes claim: a batch of a
megabyte can claim a terabyte.
"""

import struct
import threading
import zlib
from collections.abc import Callable
from mmap import mmap
from typing import Final

import cramjam

from broker.errors import CorruptRecord
from broker.records.layout import BytesLike, Codec

# Kafka itself sets no limit but that of a Java array; this one holds what real batches inflate to.
DEFAULT_MAX_DECOMPRESSED_BYTES: Final = 256 * 1024 * 1024

# What nearly all batches stay below; each thread that decompresses keeps a buffer of this size.
_USUAL_BYTES: Final = 1024 * 1024

# The configs compression.gzip.level, compression.lz4.level, compression.zstd.level.
DEFAULT_LEVELS: Final = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
_LEVELS: Final = {
    Codec.GZIP: range(1, 10),
    Codec.LZ4: range(1, 18),
    Codec.ZSTD: range(-131072, 23),
}

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + bytes([0, 0, 0, 1, 0, 0, 0, 1])  # version, oldest reader
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH: Final = struct.Struct(">i")

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_DESCRIPTOR: Final = b"\x60\x40"  # version 1, independent blocks; blocks of 64 KB
_LZ4_DESCRIPTOR_POSITION: Final = 4
_LZ4_HEADER_BYTES: Final = 7
_LZ4_CONTENT_SIZE_FLAG: Final = 0x08
_LZ4_LEAST_THOROUGH: Final = 3  # the library's levels below are the fast compressor again
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_UNCOMPRESSED_BLOCK: Final = 0x80000000
_LZ4_END_MARK: Final = bytes(4)


def is_level_valid(codec: Codec, level: int) -> bool:
    """Whether Kafka takes `level` for `codec`; none and snappy have no levels."""
    return level in _LEVELS.get(codec, ()) or level == DEFAULT_LEVELS.get(codec)


def compress(codec: Codec, data: bytes, level: int | None = None, magic: int = 2) -> bytes:
    """`data` compressed as Kafka does for this record format; ValueError for a level it refuses."""
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    elif not is_level_valid(codec, level):
        raise ValueError(f"{codec.name.lower()} has no compression level {level}")
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return _compress_gzip(data, level)
        case Codec.SNAPPY:
            return _compress_snappy(data)
        case Codec.LZ4:
            return _compress_lz4(data, level, magic)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=level))


def decompress(
    codec: Codec,
    data: BytesLike,
    max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    magic: int = 2,
) -> bytes:
    """What `data` was compressed from; CorruptRecord if that is unreadable or over `max_bytes`."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return _decompress(codec, cramjam.gzip.decompress_into, data, max_bytes)
        case Codec.SNAPPY:
            return _decompress_snappy(data, max_bytes)
        case Codec.LZ4:
            frame = _with_right_checksum(data) if magic == 0 else data
            return _decompress(codec, cramjam.lz4.decompress_into, frame, max_bytes)
        case Codec.ZSTD:
            return _decompress(codec, cramjam.zstd.decompress_into, data, max_bytes)


def _decompress(
    codec: Codec,
    decompress_into: Callable[[BytesLike, bytearray | mmap], int],
    data: BytesLike,
    max_bytes: int,
) -> bytes:
    """Decompress into as much room as is usual; where that fails, into all that is allowed.

    The library says "no room" and "corrupt" with the same exception, so both get the second try.
    It costs little: of the mapped memory only the pages that are written to become real.
    """
    room = min(max_bytes, _USUAL_BYTES)
    output = _scratch.buffer if room == _USUAL_BYTES else bytearray(room)
    try:
        size = decompress_into(data, output)
        with memoryview(output) as view:
            return bytes(view[:size])
    except cramjam.DecompressionError as error:
        if room == max_bytes:
            raise _unreadable(codec, error, max_bytes) from None
    with mmap(-1, max_bytes) as mapped:
        try:
            return mapped[: decompress_into(data, mapped)]
        except cramjam.DecompressionError as error:
            raise _unreadable(codec, error, max_bytes) from None


class _Scratch(threading.local):
    """A buffer of each thread's own: getting fresh memory took longer than decompressing lz4."""

    def __init__(self) -> None:
        self.buffer = bytearray(_USUAL_BYTES)


_scratch = _Scratch()


def _unreadable(codec: Codec, error: Exception, max_bytes: int) -> CorruptRecord:
    return CorruptRecord(f"{codec.name.lower()}: {error} (expected at most {max_bytes} bytes)")


def _compress_gzip(data: bytes, level: int) -> bytes:
    compressor = zlib.compressobj(level, wbits=31)  # 31: with gzip's header and trailer
    return compressor.compress(data) + compressor.flush()


def _compress_snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: BytesLike, max_bytes: int) -> bytes:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_raw_snappy(data, max_bytes)
    parts = []
    room = max_bytes
    position = len(_XERIAL_HEADER)
    while position < len(data):
        try:
            (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        except struct.error:
            raise CorruptRecord(f"snappy: block at {position} has no whole length") from None
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise CorruptRecord(
                f"snappy: expected a block of at most {len(data) - position} bytes at {position}, "
                f"found {length}"
            )
        part = _decompress_raw_snappy(data[position : position + length], room)
        parts.append(part)
        room -= len(part)
        position += length
    return b"".join(parts)


def _decompress_raw_snappy(data: BytesLike, max_bytes: int) -> bytes:
    try:
        # The length is a claim; it is held against the limit before anything is allocated.
        length = cramjam.snappy.decompress_raw_len(data)
        if length > max_bytes:
            raise CorruptRecord(f"snappy: expected at most {max_bytes} bytes more, found {length}")
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise CorruptRecord(str(error)) from None


def _compress_lz4(data: bytes, level: int, magic: int) -> bytes:
    checked = _LZ4_MAGIC + _LZ4_DESCRIPTOR if magic == 0 else _LZ4_DESCRIPTOR
    parts = [_LZ4_MAGIC, _LZ4_DESCRIPTOR, bytes([_descriptor_checksum(checked)])]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        compressed = _compress_lz4_block(block, level)
        if len(compressed) < len(block):
            parts += (len(compressed).to_bytes(4, "little"), compressed)
        else:
            parts += ((len(block) | _LZ4_UNCOMPRESSED_BLOCK).to_bytes(4, "little"), block)
    return b"".join((*parts, _LZ4_END_MARK))


def _compress_lz4_block(block: bytes, level: int) -> bytes:
    # Kafka's default level names the fast compressor; any other, the thorough one at that level.
    if level == DEFAULT_LEVELS[Codec.LZ4]:
        return bytes(cramjam.lz4.compress_block(block, store_size=False))
    # The library's blocks know no levels, its frames do: take the one block out of a frame.
    compressor = cramjam.lz4.Compressor(
        level=max(level, _LZ4_LEAST_THOROUGH), content_checksum=False, block_linked=False
    )
    compressor.compress(block)
    frame = bytes(compressor.finish())
    start = _LZ4_HEADER_BYTES + 4
    length = int.from_bytes(frame[_LZ4_HEADER_BYTES:start], "little") & ~_LZ4_UNCOMPRESSED_BLOCK
    return frame[start : start + length]


def _with_right_checksum(frame: BytesLike) -> bytes:
    """The frame with the descriptor's checksum set right, so that a strict reader takes it."""
    fixed = bytearray(frame)
    end = _LZ4_DESCRIPTOR_POSITION + len(_LZ4_DESCRIPTOR)
    if len(fixed) > end and fixed[_LZ4_DESCRIPTOR_POSITION] & _LZ4_CONTENT_SIZE_FLAG:
        end += 8
    if len(fixed) > end:
        fixed[end] = _descriptor_checksum(bytes(fixed[_LZ4_DESCRIPTOR_POSITION:end]))
    return bytes(fixed)


def _descriptor_checksum(data: bytes) -> int:
    """The second byte of the XXH32 of less than 16 bytes, which is all a frame's head needs."""
    mask, prime_1, prime_2, prime_3 = 0xFFFFFFFF, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
    prime_4, prime_5 = 0x27D4EB2F, 0x165667B1
    value = prime_5 + len(data)
    words = len(data) // 4 * 4
    for start in range(0, words, 4):
        value += int.from_bytes(data[start : start + 4], "little") * prime_3
        value = _rotate_left(value & mask, 17) * prime_4
    for byte in data[words:]:
        value = _rotate_left(value + byte * prime_5 & mask, 11) * prime_1
    value &= mask
    value = (value ^ value >> 15) * prime_2 & mask
    value = (value ^ value >> 13) * prime_3 & mask
    return (value ^ value >> 16) >> 8 & 0xFF


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & 0xFFFFFFFF
