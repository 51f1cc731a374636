"""Frames: four bytes of size, then so many bytes. Sans-IO; a connection feeds it and drains it.

The buffer is one bytearray that the socket is read into and that frames are views of, so a batch
is not copied between the network and the file. The price is a rule: a frame is valid until the
next `writable()`; whoever wants to keep bytes longer copies them.
"""

import struct
from typing import Final

from broker.protocol.errors import DecodeError
from broker.protocol.primitives import Buffer, Part

SIZE: Final = struct.Struct(">i")

_INITIAL_BYTES: Final = 16 * 1024
_BUSY_BYTES: Final = 128 * 1024
"""What a connection may grow to that has more to say than fits, so that requests come together."""
_LARGE_BYTES: Final = 256 * 1024
"""A frame that lacks more than this is read by itself."""


class FrameError(DecodeError):
    """A size that no frame may have; the stream cannot be read on."""


class FrameBuffer:
    """Collects bytes and gives whole frames.

    Grows by doubling as bytes really arrive, never by what a size field claims, so that a lying
    client costs no more memory than it sends.
    Invariant: 0 <= _start <= _end <= len(_buffer); unread bytes are those in between.
    """

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = memoryview(bytearray(_INITIAL_BYTES))
        self._start = 0
        self._end = 0

    def writable(self) -> memoryview:
        """Where the next bytes go; ends the life of frames given before.

        Inside a large frame no further than its end: then the next one begins at the start of the
        buffer again, and nothing has to be moved.
        """
        if self._start == self._end:
            if self._end == len(self._buffer) < _BUSY_BYTES:
                self._buffer = memoryview(bytearray(2 * len(self._buffer)))
            self._start = self._end = 0
            return self._buffer
        missing = self._missing()
        is_large = missing > _LARGE_BYTES
        if is_large and self._start and self._end + missing > len(self._buffer):
            self._move_to_front()
        if self._end == len(self._buffer):
            self._make_room()
        limit = self._end + missing if is_large else len(self._buffer)
        return self._buffer[self._end : limit]

    def _missing(self) -> int:
        """How many bytes the frame begun lacks; 0 when its size has not come yet."""
        have = self._end - self._start
        if have < SIZE.size:
            return 0
        size: int = SIZE.unpack_from(self._buffer, self._start)[0]
        return size + SIZE.size - have

    def _move_to_front(self) -> None:
        unread = self._end - self._start
        self._buffer[:unread] = self._buffer[self._start : self._end]
        self._start, self._end = 0, unread

    def _make_room(self) -> None:
        """Move to the front; where that gives less than half, have twice as much."""
        unread = self._end - self._start
        if unread <= len(self._buffer) // 2:
            self._move_to_front()
            return
        larger = memoryview(bytearray(2 * len(self._buffer)))
        larger[:unread] = self._buffer[self._start : self._end]
        self._buffer, self._start, self._end = larger, 0, unread

    @property
    def has_bytes(self) -> bool:
        """Whether bytes have come that no frame was given of."""
        return self._start < self._end

    def wrote(self, count: int) -> None:
        """So many bytes were put where `writable` said."""
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame, without its size; None until more bytes come."""
        if self._end - self._start < SIZE.size:
            return None
        (size,) = SIZE.unpack_from(self._buffer, self._start)
        if not 0 <= size <= self._max_frame_bytes:
            raise FrameError(
                f"a frame of {size} bytes is announced, 0 to {self._max_frame_bytes} are allowed"
            )
        begin = self._start + SIZE.size
        if self._end - begin < size:
            return None
        self._start = begin + size
        return self._buffer[begin : self._start]

    def shrink(self) -> None:
        """Give back memory that a large frame needed, if nothing is waiting to be read."""
        if self._start == self._end and len(self._buffer) > _INITIAL_BYTES:
            self._buffer, self._start, self._end = memoryview(bytearray(_INITIAL_BYTES)), 0, 0


def set_size(parts: list[Part]) -> list[Part]:
    """Write the size of a frame into the four bytes that were left for it at the start."""
    head = parts[0]
    assert isinstance(head, bytearray)  # noqa: S101
    SIZE.pack_into(head, 0, sum(map(len, parts)) - SIZE.size)
    return parts


def join(parts: list[Part]) -> bytes:
    """The whole frame as one; records that are still in a file are read."""
    return b"".join(part if isinstance(part, Buffer) else part.read() for part in parts)
