"""The four codecs, in the framings that Kafka's clients write and expect.

gzip    one member, as zlib writes it.
snappy  Kafka's own framing (the one of the Java library "xerial"): a header of 16 bytes, then
        blocks of a 4-byte length and raw snappy. Raw snappy without it is read too.
lz4     the LZ4 frame: independent blocks of 64 KB, no checksum but the descriptor's. In format 0
        that checksum covers the wrong bytes, so it is written that way and not verified.
zstd    a plain frame; Kafka allows it in format 2 only.

Decompression never produces more than the caller allows, whatever length the data claims: a batch
of a megabyte can claim a terabyte.
"""

import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from mmap import mmap
from typing import Final

import cramjam

from broker.errors import CorruptRecord
from broker.records.java_gzip import gzip_pieces
from broker.records.layout import BytesLike, Codec


class Undecompressible(CorruptRecord):
    """Bytes that their codec cannot read, or that inflate beyond what the caller allows."""


# Kafka's only limit is that of a Java array; real batches are far smaller than this.
DEFAULT_MAX_DECOMPRESSED_BYTES: Final = 256 * 1024 * 1024

# Nearly all batches are smaller; each thread that decompresses keeps a buffer of this size.
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
_XERIAL_MAGIC_AS_LENGTH: Final = int.from_bytes(_XERIAL_MAGIC[:4], "big", signed=True)

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_DESCRIPTOR: Final = b"\x60\x40"  # version 1, independent blocks; blocks of 64 KB
_LZ4_DESCRIPTOR_POSITION: Final = 4
_LZ4_HEADER_BYTES: Final = 7
_LZ4_CONTENT_SIZE_FLAG: Final = 0x08
_LZ4_CONTENT_CHECKSUM_FLAG: Final = 0x04
_LZ4_BLOCK_CHECKSUM_FLAG: Final = 0x10
_LZ4_FIXED_FLAGS: Final = 0xE3
"""Version, block independence and reserved bits, which must be 0x60."""
_LZ4_BLOCK_SIZES: Final = (0x40, 0x50, 0x60, 0x70)
_LZ4_BLOCK_LENGTH: Final = struct.Struct("<I")
_LZ4_LEAST_THOROUGH: Final = 3  # the library's levels below are the fast compressor again
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_UNCOMPRESSED_BLOCK: Final = 0x80000000
_LZ4_END_MARK: Final = bytes(4)

_DecompressInto = Callable[[BytesLike, bytearray | mmap], int]
_INTO: Final[dict[Codec, _DecompressInto]] = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}


def is_level_valid(codec: Codec, level: int) -> bool:
    """Whether Kafka accepts `level` for `codec`; none and snappy have no levels."""
    return level in _LEVELS.get(codec, ()) or level == DEFAULT_LEVELS.get(codec)


def compress(codec: Codec, data: BytesLike, level: int | None = None, magic: int = 2) -> bytes:
    """`data` compressed as Kafka does for this record format; ValueError for a level it refuses."""
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    elif not is_level_valid(codec, level):
        raise ValueError(f"{codec.name.lower()} has no compression level {level}")
    match codec:
        case Codec.NONE:
            return bytes(data)
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
    """`data` decompressed; Undecompressible if it is corrupt or larger than `max_bytes`."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return _decompress(codec, data, max_bytes)
        case Codec.SNAPPY:
            return _decompress_snappy(data, max_bytes)
        case Codec.LZ4:
            frame = _with_right_checksum(data) if magic == 0 else data
            return _decompress(codec, frame, max_bytes)
        case Codec.ZSTD:
            return _decompress(codec, data, max_bytes)


@contextmanager
def decompressed(
    codec: Codec, data: BytesLike, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> Iterator[memoryview]:
    """`decompress` for format 2 without a copy: the view is valid inside the `with` block only."""
    decompress_into = _INTO.get(codec)
    if decompress_into is None:  # none and snappy
        yield memoryview(decompress(codec, data, max_bytes))
        return
    if codec is Codec.LZ4:
        data = _only_frame(data)
    elif codec is Codec.ZSTD and not len(data):
        yield memoryview(b"")  # a stream without a frame: empty, not corrupt
        return
    room = min(max_bytes, _USUAL_BYTES)
    output: bytearray | mmap = _scratch.buffer if room == _USUAL_BYTES else bytearray(room)
    size = _try_decompress(decompress_into, data, output)
    if isinstance(size, str) and codec is Codec.GZIP:
        yield memoryview(_decompress_gzip(data, max_bytes))
        return
    if isinstance(size, str):
        # The library raises the same exception for "output too small" and "corrupt", so try again
        # with the largest output allowed. The kernel backs only those pages that are written.
        output = mmap(-1, max_bytes)
        size = _try_decompress(decompress_into, data, output)
        if isinstance(size, str):
            output.close()
            name = codec.name.lower()
            raise Undecompressible(f"{name}: {size} (expected at most {max_bytes} bytes)")
    owner = closing(output) if isinstance(output, mmap) else nullcontext()
    with owner, memoryview(output) as whole, whole[:size] as view:
        yield view


def _decompress(codec: Codec, data: BytesLike, max_bytes: int) -> bytes:
    with decompressed(codec, data, max_bytes) as view:
        return bytes(view)


def _try_decompress(
    decompress_into: _DecompressInto, data: BytesLike, output: bytearray | mmap
) -> int | str:
    """The number of bytes written to `output`, or the library's error message."""
    try:
        return decompress_into(data, output)
    except cramjam.DecompressionError as error:
        return str(error)


class _Scratch(threading.local):
    """One buffer per thread: allocating fresh memory took longer than decompressing lz4."""

    def __init__(self) -> None:
        self.buffer = bytearray(_USUAL_BYTES)


_scratch = _Scratch()


def _compress_gzip(data: BytesLike, level: int) -> bytes:
    compressor = zlib.compressobj(level, wbits=31)  # 31: with gzip's header and trailer
    return compressor.compress(data) + compressor.flush()


def _decompress_gzip(data: BytesLike, max_bytes: int) -> bytes:
    """Decompress as Java does, for data that the library does not read."""
    parts: list[bytes] = []
    room = max_bytes
    try:
        for part in gzip_pieces(bytes(data)):
            room -= len(part)
            if room < 0:
                raise Undecompressible(f"gzip: expected at most {max_bytes} bytes")
            parts.append(part)
    except zlib.error as error:
        raise Undecompressible(f"gzip: {error}") from None
    return b"".join(parts)


def _compress_snappy(data: BytesLike) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: BytesLike, max_bytes: int) -> bytes:
    return b"".join(snappy_blocks(data, max_bytes))


def snappy_blocks(data: BytesLike, max_bytes: int) -> Iterator[bytes]:
    """The decompressed blocks; Undecompressible after those before a damaged one."""
    if len(data) < len(_XERIAL_HEADER) or not _is_xerial(data, 0):
        yield _decompress_raw_snappy(data, max_bytes)
        return
    room = max_bytes
    position = len(_XERIAL_HEADER)
    # SnappyInputStream ends without an error where less than a length is left.
    while len(data) - position >= _BLOCK_LENGTH.size:
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        if length == _XERIAL_MAGIC_AS_LENGTH and _is_xerial(data, position):
            position += len(_XERIAL_HEADER)  # another stream: SnappyInputStream continues too
            continue
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise Undecompressible(
                f"snappy: expected a block of at most {len(data) - position} bytes at {position}, "
                f"found {length}"
            )
        part = _decompress_raw_snappy(data[position : position + length], room)
        yield part
        room -= len(part)
        position += length


def _is_xerial(data: BytesLike, position: int) -> bool:
    return data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC


def _decompress_raw_snappy(data: BytesLike, max_bytes: int) -> bytes:
    try:
        # The length is unverified; it is compared with the limit before anything is allocated.
        length = cramjam.snappy.decompress_raw_len(data)
        if length > max_bytes:
            raise Undecompressible(f"snappy: expected at most {max_bytes} bytes, found {length}")
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise Undecompressible(str(error)) from None


def _compress_lz4(data: BytesLike, level: int, magic: int) -> bytes:
    checked = _LZ4_MAGIC + _LZ4_DESCRIPTOR if magic == 0 else _LZ4_DESCRIPTOR
    parts: list[BytesLike] = [_LZ4_MAGIC, _LZ4_DESCRIPTOR, bytes([_descriptor_checksum(checked)])]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        compressed = _compress_lz4_block(block, level)
        if len(compressed) < len(block):
            parts += (len(compressed).to_bytes(4, "little"), compressed)
        else:
            parts += ((len(block) | _LZ4_UNCOMPRESSED_BLOCK).to_bytes(4, "little"), block)
    return b"".join((*parts, _LZ4_END_MARK))


def _compress_lz4_block(block: BytesLike, level: int) -> bytes:
    # Kafka's default level selects the fast compressor; any other level, the high-compression one.
    if level == DEFAULT_LEVELS[Codec.LZ4]:
        return bytes(cramjam.lz4.compress_block(block, store_size=False))
    # The library supports levels for frames only, so take the one block out of a frame.
    compressor = cramjam.lz4.Compressor(
        level=max(level, _LZ4_LEAST_THOROUGH), content_checksum=False, block_linked=False
    )
    compressor.compress(block)
    frame = bytes(compressor.finish())
    start = _LZ4_HEADER_BYTES + 4
    length = int.from_bytes(frame[_LZ4_HEADER_BYTES:start], "little") & ~_LZ4_UNCOMPRESSED_BLOCK
    return frame[start : start + length]


def _only_frame(data: BytesLike) -> BytesLike:
    """The first frame of `data`, without the parts that Kafka does not check.

    Kafka reads up to the end mark and ignores what follows, the content size and the content
    checksum; the library checks all three. Kafka refuses blocks that depend on each other.
    """
    if len(data) < _LZ4_HEADER_BYTES or data[:4] != _LZ4_MAGIC:
        raise Undecompressible("lz4: no frame")
    flags, block_size = data[4], data[5]
    if flags & _LZ4_FIXED_FLAGS != 0x60 or block_size not in _LZ4_BLOCK_SIZES:
        raise Undecompressible(f"lz4: unsupported frame descriptor {flags:#x} {block_size:#x}")
    start = _LZ4_HEADER_BYTES + (8 if flags & _LZ4_CONTENT_SIZE_FLAG else 0)
    end = _end_of_blocks(data, start, 4 if flags & _LZ4_BLOCK_CHECKSUM_FLAG else 0)
    dropped = flags & (_LZ4_CONTENT_SIZE_FLAG | _LZ4_CONTENT_CHECKSUM_FLAG)
    if not dropped:
        if data[end - 4 : end] != _LZ4_END_MARK:  # for Kafka the bit for "uncompressed" may be set
            return b"".join((data[: end - 4], _LZ4_END_MARK))
        return data if end == len(data) else data[:end]
    if data[start - 1] != _descriptor_checksum(bytes(data[4 : start - 1])):
        raise Undecompressible("lz4: the checksum of the frame descriptor is wrong")
    if flags & _LZ4_CONTENT_CHECKSUM_FLAG and len(data) - end < 4:
        raise Undecompressible("lz4: cut short")
    descriptor = bytes([flags & ~dropped, block_size])
    checksum = bytes([_descriptor_checksum(descriptor)])
    blocks = data[start : end - len(_LZ4_END_MARK)]
    return b"".join((_LZ4_MAGIC, descriptor, checksum, blocks, _LZ4_END_MARK))


def lz4_blocks(data: BytesLike) -> Iterator[bytes]:
    """The decompressed blocks of the first frame; an error after those before a damaged one."""
    if len(data) < _LZ4_HEADER_BYTES or data[:4] != _LZ4_MAGIC:
        raise Undecompressible("lz4: no frame")
    flags, block_size = data[4], data[5]
    if flags & _LZ4_FIXED_FLAGS != 0x60 or block_size not in _LZ4_BLOCK_SIZES:
        raise Undecompressible(f"lz4: unsupported frame descriptor {flags:#x} {block_size:#x}")
    position = _LZ4_HEADER_BYTES + (8 if flags & _LZ4_CONTENT_SIZE_FLAG else 0)
    descriptor = bytes([flags & _LZ4_BLOCK_CHECKSUM_FLAG | 0x60, block_size])
    if data[position - 1 : position] != bytes(
        [_descriptor_checksum(bytes(data[4 : position - 1]))]
    ):
        raise Undecompressible("lz4: the checksum of the frame descriptor is wrong")
    head = b"".join((_LZ4_MAGIC, descriptor, bytes([_descriptor_checksum(descriptor)])))
    checksum_bytes = 4 if flags & _LZ4_BLOCK_CHECKSUM_FLAG else 0
    while len(data) - position >= 4:
        length = _LZ4_BLOCK_LENGTH.unpack_from(data, position)[0] & ~_LZ4_UNCOMPRESSED_BLOCK
        end = position + 4 + length + checksum_bytes
        if not length or end > len(data):
            return
        yield bytes(cramjam.lz4.decompress(b"".join((head, data[position:end], _LZ4_END_MARK))))
        position = end


def _end_of_blocks(data: BytesLike, position: int, checksum_bytes: int) -> int:
    """The position after the end mark of the blocks that start at `position`."""
    while len(data) - position >= 4:
        (length,) = _LZ4_BLOCK_LENGTH.unpack_from(data, position)
        position += 4
        length &= ~_LZ4_UNCOMPRESSED_BLOCK
        if not length:
            return position
        position += length + checksum_bytes
    raise Undecompressible("lz4: cut short")


def _with_right_checksum(frame: BytesLike) -> bytes:
    """The frame with the correct descriptor checksum, which the library verifies."""
    fixed = bytearray(frame)
    end = _LZ4_DESCRIPTOR_POSITION + len(_LZ4_DESCRIPTOR)
    if len(fixed) > end and fixed[_LZ4_DESCRIPTOR_POSITION] & _LZ4_CONTENT_SIZE_FLAG:
        end += 8
    if len(fixed) > end:
        fixed[end] = _descriptor_checksum(bytes(fixed[_LZ4_DESCRIPTOR_POSITION:end]))
    return bytes(fixed)


def _descriptor_checksum(data: bytes) -> int:
    """The second byte of the XXH32 of fewer than 16 bytes: the checksum of a frame descriptor."""
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
