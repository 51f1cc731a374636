"""A ZooKeeper ensemble, which loses its quorum when a majority of its servers is gone or hangs."""

import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.client import KazooClient

from kctl.dev.zookeeper import ZOO_CFG, zookeeper_command
from tests.support.processes import POLL_S, ServerProcess, free_port
from tests.support.zookeeper import expire_session

START_TIMEOUT_S = 300
"""Three JVMs that start together on a busy machine took more than a minute."""
_FOUR_LETTER_WORD = b"srvr"
_ENSEMBLE = "initLimit=20\nsyncLimit=10\n"


@dataclass
class Ensemble:
    """Servers that keep their ports and their data from one start to the next."""

    directory: Path
    host: str
    ports: list[int]
    wrap: Callable[[list[str]], list[str]]
    servers: dict[int, ServerProcess] = field(default_factory=dict)
    """By index; those that run, paused ones included."""

    @property
    def address(self) -> str:
        """The connect string without a chroot."""
        return ",".join(f"{self.host}:{port}" for port in self.ports)

    @property
    def majority(self) -> int:
        """How many servers a quorum needs."""
        return len(self.ports) // 2 + 1

    def start(self) -> None:
        """Start the servers that do not run, and return when there is a quorum."""
        for index in range(len(self.ports)):
            if index not in self.servers:
                config = self.directory / str(index) / "zoo.cfg"
                log_file = self.directory / f"zookeeper-{index}.log"
                self.servers[index] = ServerProcess(self.wrap(zookeeper_command(config)), log_file)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not any(map(self._serves, self.ports)):
            assert time.monotonic() < deadline, "ZooKeeper has no quorum"
            time.sleep(POLL_S)

    def _serves(self, port: int) -> bool:
        """Whether the server is part of a quorum."""
        with suppress(OSError), socket.create_connection((self.host, port), 1) as connection:
            connection.sendall(_FOUR_LETTER_WORD)
            return b"Mode:" in connection.recv(4096)
        return False

    def kill(self, count: int | None = None) -> None:
        """Kill -9 of this many servers (None: all)."""
        for index in sorted(self.servers)[:count]:
            process = self.servers.pop(index).process
            process.kill()
            process.wait()

    @contextmanager
    def paused(self, count: int) -> Iterator[None]:
        """Pause this many servers."""
        pids = [self.servers[index].process.pid for index in sorted(self.servers)[:count]]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def expire_session(self, session_id: int) -> None:
        """Expire a client's session; see `tests.support.zookeeper`."""
        for port in self.ports:
            with suppress(OSError, struct.error):
                expire_session((self.host, port), session_id)
                return

    def fresh_chroot(self) -> str:
        """A connect string with an empty tree of its own."""
        client = KazooClient(self.address, timeout=2)
        client.start(timeout=START_TIMEOUT_S)
        try:
            return f"{self.address}{client.create('/chaos-', sequence=True)}"
        finally:
            client.stop()
            client.close()


@contextmanager
def running_ensemble(
    directory: Path,
    size: int,
    host: str = "127.0.0.1",
    wrap: Callable[[list[str]], list[str]] = lambda command: command,
) -> Iterator[Ensemble]:
    """Start an ensemble; ended with the block."""
    ensemble = Ensemble(directory, host, [free_port() for _ in range(size)], wrap)
    peers = "".join(f"server.{index}={host}:{free_port()}:{free_port()}\n" for index in range(size))
    for index, port in enumerate(ensemble.ports):
        home = directory / str(index)
        (home / "data").mkdir(parents=True)
        (home / "data" / "myid").write_text(str(index))
        config = ZOO_CFG.format(directory=home, port=port).replace("127.0.0.1", host)
        config += "4lw.commands.whitelist=*\n"
        (home / "zoo.cfg").write_text(config + (_ENSEMBLE + peers if size > 1 else ""))
    try:
        ensemble.start()
        yield ensemble
    finally:
        ensemble.kill()
