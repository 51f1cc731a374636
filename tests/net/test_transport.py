"""What a plain transport sends: buffers and file slices of all sizes, whatever the socket takes."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.log.files import FileSlice, OpenFile
from broker.net.transport import PlainTransport
from broker.protocol.framing import join
from broker.protocol.primitives import Part

FILE_BYTES = 600 * 1024
CONTENT = os.urandom(FILE_BYTES)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> OpenFile:
    path = tmp_path_factory.mktemp("transport") / "segment"
    path.write_bytes(CONTENT)
    return OpenFile(os.open(path, os.O_RDONLY), path)


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection with small buffers: the broker's does not block."""
    ours, theirs = connected()
    with ours, theirs:
        yield ours, theirs


def connected() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)
    ours.setblocking(False)
    return ours, theirs


SLICES = st.tuples(st.integers(0, FILE_BYTES), st.integers(0, 200 * 1024))
PARTS = st.lists(st.one_of(st.binary(max_size=200), SLICES), min_size=1, max_size=8)


@given(responses=st.lists(PARTS, min_size=1, max_size=3), reads=st.integers(16_384, 200_000))
def test_every_byte_is_sent_once_and_in_order(
    responses: list[list[bytes | tuple[int, int]]], reads: int, file: OpenFile
) -> None:
    ours, theirs = connected()
    with ours, theirs:
        transport = PlainTransport(ours)
        received = bytearray()
        wanted = b""
        for response in responses:
            parts = [part_of(part, file) for part in response]
            wanted += join(parts)
            transport.write(parts)
        theirs.setblocking(False)
        while len(received) < len(wanted):
            received += theirs.recv(reads)
            if transport.has_unsent:
                transport.flush()
        assert bytes(received) == wanted
        assert not transport.has_unsent


def part_of(part: bytes | tuple[int, int], file: OpenFile) -> Part:
    if isinstance(part, bytes):
        return part
    position, length = part
    return FileSlice(file, position, min(length, FILE_BYTES - position))


def test_slices_that_the_socket_has_no_room_for_stay_in_the_file(
    sockets: tuple[socket.socket, socket.socket], file: OpenFile
) -> None:
    transport = PlainTransport(sockets[0])
    assert not transport.write([FileSlice(file, 0, 100 * 1024) for _ in range(100)])
    in_memory = sum(len(part) for part in transport._unsent if isinstance(part, bytes))
    assert in_memory <= 1200 * 1024


@pytest.mark.parametrize("length", [1024, 400 * 1024])
def test_slice_of_a_file_that_has_become_shorter_is_an_error(
    sockets: tuple[socket.socket, socket.socket], tmp_path: Path, length: int
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 100)
    part = FileSlice(OpenFile(os.open(path, os.O_RDONLY), path), 0, length)
    transport = PlainTransport(sockets[0])
    with pytest.raises(OSError, match="a file ended"):
        transport.write([b"head", part])
