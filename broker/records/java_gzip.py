"""gzip as Java's GZIPInputStream reads it, which is less strict than zlib.

Reserved flags are ignored, and so are bytes after a member that do not start another one. The
pieces are those that one call of Inflater gives, at most 16 KiB: if the data is damaged, what came
before has been read by then. A wrong trailer is found only after all of a member's data.
"""

import zlib
from collections.abc import Generator, Iterator
from typing import Final

_INPUT_BYTES: Final = 8 * 1024
_OUTPUT_BYTES: Final = 16 * 1024
_MAGIC: Final = b"\x1f\x8b\x08"
_FIXED_HEADER: Final = 10
_TRAILER: Final = 8
_SMALLEST_MEMBER: Final = 18
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT = 2, 4, 8, 16


def gzip_pieces(data: bytes) -> Iterator[bytes]:
    """The decompressed data of all members; zlib.error where it is damaged."""
    position = yield from _member(data, _after_header(data, 0))
    while len(data) - position > _SMALLEST_MEMBER:
        try:
            start = _after_header(data, position)
        except zlib.error:
            return
        position = yield from _member(data, start)


def _member(data: bytes, position: int) -> Generator[bytes, None, int]:
    """The data of one member after its header; returns the position after its trailer."""
    inflater = zlib.decompressobj(wbits=-15)  # without header and trailer
    crc = size = 0
    while not inflater.eof:
        taken = data[position : position + _INPUT_BYTES]
        position += len(taken)
        if not taken:
            raise zlib.error("the data is cut short")
        while taken and not inflater.eof:
            piece = inflater.decompress(taken, _OUTPUT_BYTES)
            taken = inflater.unconsumed_tail
            crc, size = zlib.crc32(piece, crc), size + len(piece)
            yield piece
    position -= len(inflater.unused_data)
    trailer = data[position : position + _TRAILER]
    if trailer != crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little"):
        raise zlib.error("the checksum or the size at the end is wrong")
    return position + _TRAILER


def _after_header(data: bytes, start: int) -> int:
    position = start + _FIXED_HEADER
    if len(data) <= position or data[start : start + 3] != _MAGIC:
        raise zlib.error("the header is missing")
    flags = data[start + 3]
    if flags & _FEXTRA:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            position = data.find(b"\0", position) + 1
            if not position:
                raise zlib.error("the header has no end")
    if flags & _FHCRC:
        crc = zlib.crc32(data[start:position]) & 0xFFFF
        if data[position : position + 2] != crc.to_bytes(2, "little"):
            raise zlib.error("the checksum of the header is wrong")
        position += 2
    return position
