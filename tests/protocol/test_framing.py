import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.framing import FrameBuffer, FrameError


def feed(frames: FrameBuffer, data: bytes, chunk_bytes: int) -> list[bytes]:
    """Feed `data` in chunks, as a socket would; returns copies of the frames."""
    found = []
    position = 0
    while position < len(data):
        room = frames.writable()
        count = min(len(room), chunk_bytes, len(data) - position)
        room[:count] = data[position : position + count]
        frames.wrote(count)
        position += count
        while (frame := frames.next_frame()) is not None:
            found.append(bytes(frame))
    return found


@given(
    bodies=st.lists(st.binary(max_size=300), max_size=20),
    large=st.integers(0, 200_000),
    chunk_bytes=st.integers(1, 70_000),
)
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(
    bodies: list[bytes], large: int, chunk_bytes: int
) -> None:
    bodies = [*bodies, random.Random(large).randbytes(large), b"after"]
    data = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    if chunk_bytes < 64:
        chunk_bytes *= 64  # more chunks would only take longer
    assert feed(FrameBuffer(1 << 20), data, chunk_bytes) == bodies


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_size_outside_the_limits_raises_frame_error(size: int) -> None:
    frames = FrameBuffer(max_frame_bytes=100)
    with pytest.raises(FrameError, match=f"a frame of {size} bytes"):
        feed(frames, size.to_bytes(4, "big", signed=True), 4)


def test_announced_size_allocates_nothing_before_the_bytes_come() -> None:
    frames = FrameBuffer(max_frame_bytes=2**30)
    feed(frames, (2**30).to_bytes(4, "big") + bytes(1000), 1004)
    assert len(frames.writable()) < 1 << 20


def test_shrink_gives_back_the_room_of_a_large_frame() -> None:
    frames = FrameBuffer(max_frame_bytes=2**20)
    body = bytes(2**19)
    assert feed(frames, len(body).to_bytes(4, "big") + body, 65536) == [body]
    frames.shrink()
    assert len(frames.writable()) < 2**19


def test_idle_connection_keeps_a_small_buffer_that_grows_with_its_reads() -> None:
    frames = FrameBuffer(max_frame_bytes=2**20)
    assert len(frames.writable()) <= 2048
    frame = (1000).to_bytes(4, "big") + bytes(1000)
    feed(frames, frame * 300, chunk_bytes=2**20)
    assert len(frames.writable()) >= 64 * 1024


def test_regression_large_frame_is_copied_when_room_doubles_and_not_with_every_read() -> None:
    frames = FrameBuffer(max_frame_bytes=2**24)
    size = 2**20
    feed(frames, b"\0\0\0\1x" + size.to_bytes(4, "big"), 9)  # begins behind another frame
    received = copies = 0
    tracemalloc.start()
    try:
        while received < size:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            room = frames.writable()
            copies += tracemalloc.get_traced_memory()[1] > before + 2048
            count = min(len(room), 4096)
            room[:count] = bytes(count)
            frames.wrote(count)
            received += count
    finally:
        tracemalloc.stop()
    frame = frames.next_frame()
    assert frame is not None
    assert bytes(frame) == bytes(size)
    assert copies <= 7  # from 16 KB to 2 MB
