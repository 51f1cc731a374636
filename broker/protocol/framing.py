"""Frames: four bytes of size, then that many bytes. Sans-IO; a connection feeds and drains it.

The socket is read into one buffer and frames are views of it, so a batch is not copied between the
network and the file. Therefore a frame is valid only until the next `writable()`: to keep bytes
longer, copy them.

Small frames share a buffer that doubles as bytes arrive. A frame that lacks more than 256 KiB gets
a buffer of exactly its size, whose pages the kernel provides as they are written: it is never
copied again, and a size field that lies costs no memory. What large frames occupy is counted by a
`FrameMemory`, which may stop a connection from reading on.
"""

import mmap
import struct
import sys
from typing import Final, Protocol

from broker.protocol.errors import DecodeError
from broker.protocol.primitives import Buffer, Part

SIZE: Final = struct.Struct(">i")

_INITIAL_BYTES: Final = 2 * 1024
"""What an idle connection keeps. A busy one doubles it with its first reads, and keeps that."""
_BUSY_BYTES: Final = 128 * 1024
"""The buffer of a connection that sends more than fits grows to this, so that many requests are
read at once."""
_LARGE_BYTES: Final = 256 * 1024
"""A frame that lacks more than this gets a buffer of its own size."""
_READ_BYTES: Final = 1024 * 1024
"""At most this much of a large frame is read at once, and counted before."""
_KEPT_BYTES: Final = 4 * 1024 * 1024
"""A larger buffer is not kept for the next frame."""
_MAP_NORESERVE: Final = 0x4000 if sys.platform == "linux" else 0
"""Linux: address space without memory behind it until it is written. Elsewhere that is usual."""

NO_ROOM: Final = memoryview(b"")
"""Returned by `writable` when the memory for large frames is exhausted."""


class FrameError(DecodeError):
    """An invalid frame size; the rest of the stream cannot be read."""


class FrameMemory(Protocol):
    """Counts the bytes that large frames occupy, over many connections."""

    def may_read(self, frames: "FrameBuffer", num_bytes: int) -> bool:
        """Whether the large frame in `frames` may grow to `num_bytes`; counts them if so."""
        ...

    def release(self, frames: "FrameBuffer") -> None:
        """The large frame in `frames` has been processed, or its connection was closed."""
        ...


class FrameBuffer:
    """Collects bytes and returns whole frames.

    Invariant: 0 <= _start <= _end <= len(_buffer); unread bytes are those in between.
    """

    def __init__(self, max_frame_bytes: int, memory: FrameMemory | None = None) -> None:
        self.max_frame_bytes = max_frame_bytes
        """A larger frame is an error. May be changed; applies from the next frame on."""
        self._memory = memory
        self._buffer = memoryview(bytearray(_INITIAL_BYTES))
        self._start = 0
        self._end = 0
        self.is_counted = False
        """Whether `memory` counts a large frame of this buffer, unfinished or being processed."""
        self._counted_end = 0
        """Where in the buffer the frame that is counted ends."""

    def writable(self) -> memoryview:
        """The buffer for the next bytes; frames returned before become invalid.

        Inside a large frame the view ends with the frame, so that the next one begins at the start
        of the buffer and nothing has to be moved. NO_ROOM if a large frame has to wait for memory.
        """
        if self._start == self._end:
            if self._end == len(self._buffer):
                self._resize_empty()
            self._start = self._end = 0
            return self._buffer
        missing = self._missing()
        if missing > _LARGE_BYTES:
            return self._writable_for_large(missing)
        if self._end == len(self._buffer):
            self._make_room()
        return self._buffer[self._end :]

    def _resize_empty(self) -> None:
        """Double a small buffer that was filled, drop a very large one."""
        size = len(self._buffer)
        if size < _BUSY_BYTES:
            self._buffer = memoryview(bytearray(2 * size))
        elif size > _KEPT_BYTES:
            self.shrink()

    def _writable_for_large(self, missing: int) -> memoryview:
        unread = self._end - self._start
        if unread + missing <= len(self._buffer):
            if self._end + missing > len(self._buffer):
                self._move_to(self._buffer)
        elif self._end < len(self._buffer):  # the size may be wrong: fill the existing buffer first
            return self._buffer[self._end :]
        else:
            pages = mmap.mmap(-1, unread + missing, _MAP_NORESERVE | mmap.MAP_PRIVATE)
            self._move_to(memoryview(pages))
        count = min(missing, _READ_BYTES)
        if self._memory is not None:
            self.is_counted = True
            self._counted_end = self._end + missing
            if not self._memory.may_read(self, unread + count):
                return NO_ROOM
        return self._buffer[self._end : self._end + count]

    def _missing(self) -> int:
        """How many bytes of the current frame are missing; 0 if its size has not arrived yet."""
        have = self._end - self._start
        if have < SIZE.size:
            return 0
        size: int = SIZE.unpack_from(self._buffer, self._start)[0]
        return size + SIZE.size - have

    def _move_to(self, buffer: memoryview) -> None:
        """Move the unread bytes to the front of a buffer, which may be the current one."""
        unread = self._end - self._start
        buffer[:unread] = self._buffer[self._start : self._end]
        self._buffer, self._start, self._end = buffer, 0, unread

    def _make_room(self) -> None:
        """Move the unread bytes to the front of the buffer, which was filled, or of a larger one.

        It is doubled if they fill over half of it, or if it is small: the peer sends more at once.
        """
        size = len(self._buffer)
        if self._end - self._start <= size // 2 and size >= _BUSY_BYTES:
            self._move_to(self._buffer)
        else:
            self._move_to(memoryview(bytearray(2 * size)))

    @property
    def has_bytes(self) -> bool:
        """Whether bytes have arrived that no returned frame contains."""
        return self._start < self._end

    @property
    def num_unread(self) -> int:
        """How many bytes have arrived that no returned frame contains."""
        return self._end - self._start

    def wrote(self, count: int) -> None:
        """Record that `count` bytes were written into the view from `writable`."""
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame, without its size; None until more bytes come."""
        if self._end - self._start < SIZE.size:
            return None
        (size,) = SIZE.unpack_from(self._buffer, self._start)
        if not 0 <= size <= self.max_frame_bytes:
            raise FrameError(
                f"a frame of {size} bytes is announced, 0 to {self.max_frame_bytes} are allowed"
            )
        begin = self._start + SIZE.size
        if self._end - begin < size:
            return None
        self._start = begin + size
        return self._buffer[begin : self._start]

    def shrink(self) -> None:
        """Free the memory that a large frame needed, if nothing is waiting to be read."""
        if self._start == self._end and len(self._buffer) > _INITIAL_BYTES:
            self._buffer, self._start, self._end = memoryview(bytearray(_INITIAL_BYTES)), 0, 0

    def release_processed(self) -> None:
        """Stop counting the large frame if it was returned; called when it has been processed."""
        if self._start >= self._counted_end:
            self.release()

    def release(self) -> None:
        """Stop counting the large frame, and free its memory if it was returned."""
        if self._memory is not None and self.is_counted:
            self.is_counted = False
            self._memory.release(self)
            if len(self._buffer) > _KEPT_BYTES:
                self.shrink()

    def close(self) -> None:
        """Free everything. The connection was closed: no more frames are read or returned.

        The garbage collector runs seldom, so memory must not wait for it.
        """
        self.release()
        self._buffer, self._start, self._end = NO_ROOM, 0, 0


def set_size(parts: list[Part]) -> list[Part]:
    """Write the size of a frame into the four bytes that were left for it at the start."""
    head = parts[0]
    assert isinstance(head, bytearray)  # noqa: S101
    SIZE.pack_into(head, 0, sum(map(len, parts)) - SIZE.size)
    return parts


def join(parts: list[Part]) -> bytes:
    """The whole frame as one; records that are still in a file are read."""
    return b"".join(part if isinstance(part, Buffer) else part.read() for part in parts)
