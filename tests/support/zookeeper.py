"""A real ZooKeeper for tests: the one in PySpark's jars, on the Java that kctl finds."""

import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kazoo.client import KazooClient

from kctl.dev.zookeeper import ZOO_CFG, zookeeper_command
from tests.support.processes import ServerProcess, free_port

_SECRET = 0xB3415C00
"""ZooKeeper's constant from which, with the id, it derives a session's password."""
_CLOSE_SESSION = -11
_THIEF_TIMEOUT_MS = 10_000


@dataclass
class ZooKeeper:
    """A running ZooKeeper, which keeps its port and its data from one start to the next."""

    directory: Path
    port: int
    server: ServerProcess

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it as a crash would: kill -9."""
        self.server.process.kill()
        self.server.process.wait()

    def start(self) -> None:
        """Start it again, and return when it answers."""
        self.server = _launch(self.directory)
        self.server.wait_for_port(self.port)

    def expire_session(self, session_id: int) -> None:
        """Expire another client's session, by reconnecting to it with its password and closing it.

        The client learns of it with its next request, as after a session timeout. A session that
        has already ended is ignored.
        """
        expire_session(("127.0.0.1", self.port), session_id)

    def fresh_chroot(self) -> str:
        """A connect string with an empty tree of its own, as `zookeeper.connect` takes it."""
        with self._client() as client:
            path = client.create("/test-", sequence=True)
        return f"{self.address}{path}"

    def children(self, path: str) -> list[str]:
        """The names of the nodes below a node, sorted."""
        with self._client() as client:
            return sorted(client.get_children(path))

    @contextmanager
    def _client(self) -> Iterator[KazooClient]:
        # A ZooKeeper that has only just begun to listen may not answer the first time: kazoo tries
        # again after the session timeout, ten seconds by default.
        client = KazooClient(self.address, timeout=2)
        client.start(timeout=20)
        try:
            yield client
        finally:
            client.stop()
            client.close()


def expire_session(server: tuple[str, int], session_id: int) -> None:
    """See `ZooKeeper.expire_session`."""
    password = session_password(session_id)
    back = struct.pack(">iqiqi16s?", 0, 0, _THIEF_TIMEOUT_MS, session_id, 16, password, False)
    close = struct.pack(">ii", 1, _CLOSE_SESSION)
    with socket.create_connection(server, timeout=20) as connection:
        for frame in (back, close):
            connection.sendall(struct.pack(">i", len(frame)) + frame)
        while connection.recv(1024):  # until ZooKeeper, having closed it, closes this as well
            pass


def session_password(session_id: int) -> bytes:
    """The password of a session: sixteen bytes of Java's random numbers, seeded with its id."""
    mask = (1 << 48) - 1
    state = (session_id ^ _SECRET ^ 0x5DEECE66D) & mask
    password = b""
    while len(password) < 16:
        state = (state * 0x5DEECE66D + 0xB) & mask
        password += (state >> 16).to_bytes(4, "little")
    return password


def _launch(directory: Path) -> ServerProcess:
    return ServerProcess(zookeeper_command(directory / "zoo.cfg"), directory / "zookeeper.log")


@contextmanager
def running_zookeeper(
    directory: Path, settings: Mapping[str, object] | None = None
) -> Iterator[ZooKeeper]:
    """Start a ZooKeeper that keeps its data in `directory`; ended with the block."""
    port = free_port()
    more = "".join(f"{key}={value}\n" for key, value in (settings or {}).items())
    (directory / "zoo.cfg").write_text(ZOO_CFG.format(directory=directory, port=port) + more)
    zookeeper = ZooKeeper(directory, port, _launch(directory))
    try:
        zookeeper.server.wait_for_port(port)
        yield zookeeper
    finally:
        zookeeper.server.stop()
