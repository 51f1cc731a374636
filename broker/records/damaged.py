"""What Kafka reads from compressed records before their stream turns out to be damaged.

Kafka decompresses while it reads records, so a wrong record that comes before the damage decides
the error: INVALID_RECORD instead of UNKNOWN_SERVER_ERROR. The prefix ends where Java's stream
fails: each stream decodes a piece at a time, and a piece that fails gives nothing.

gzip    what one call of inflate gives, at most 16 KiB; a wrong trailer fails after all of its data
snappy  reads of 2 KiB, each from as many blocks as it takes
lz4     one block
zstd    what the library has written when it fails; nearly what Java's gives

Only for batches that are refused in any case, and only for the first megabyte of their records.
"""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import cramjam

from broker.errors import CorruptRecord
from broker.records.compression import lz4_blocks, snappy_blocks
from broker.records.java_gzip import gzip_pieces
from broker.records.layout import BytesLike, Codec

_SNAPPY_OUTPUT: Final = 2 * 1024
_MAX_BYTES: Final = 1024 * 1024


def readable_prefix(codec: Codec, data: BytesLike) -> bytes:
    """The decompressed bytes before the damage."""
    pieces: Iterator[bytes] = iter(())
    match codec:
        case Codec.GZIP:
            pieces = gzip_pieces(bytes(data))
        case Codec.SNAPPY:
            pieces = snappy_blocks(data, _MAX_BYTES)
        case Codec.LZ4:
            pieces = lz4_blocks(data)
        case Codec.ZSTD:
            pieces = iter([_written_by_zstd(data)])
    found = bytearray()
    with suppress(CorruptRecord, zlib.error, cramjam.DecompressionError):
        for piece in pieces:
            found += piece
            if len(found) > _MAX_BYTES:
                break
    if codec is Codec.SNAPPY:
        del found[len(found) // _SNAPPY_OUTPUT * _SNAPPY_OUTPUT :]
    return bytes(found[:_MAX_BYTES])


def _written_by_zstd(data: BytesLike) -> bytes:
    """The bytes that two outputs with different initial contents have in common at the start."""
    outputs = bytearray(_MAX_BYTES), bytearray(b"\xff") * _MAX_BYTES
    for output in outputs:
        with suppress(cramjam.DecompressionError):
            cramjam.zstd.decompress_into(data, output)
    low, high = 0, _MAX_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        if outputs[0][low:middle] == outputs[1][low:middle]:
            low = middle
        else:
            high = middle - 1
    return bytes(outputs[0][:low])
