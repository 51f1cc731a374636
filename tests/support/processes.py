"""Server processes of tests, ended by their process ids."""

import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

POLL_S = 0.02
STOP_TIMEOUT_S = 30


def free_port() -> int:
    """A port that nothing listens on now; for servers that cannot choose one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def rss_bytes(pid: int) -> int:
    """The resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class ServerProcess:
    """A running server whose output goes to `log_file`. Leaving the `with` block ends it."""

    def __init__(
        self, command: Sequence[str], log_file: Path, environ: Mapping[str, str] | None = None
    ) -> None:
        self.log_file = log_file
        self._name = log_file.stem
        with log_file.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environ
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait_for_port(self, port: int, timeout_s: float = 60) -> None:
        """Return when `port` accepts connections."""
        deadline = time.monotonic() + timeout_s
        while not _accepts(port):
            self._still_waiting(deadline, f"listen on {port}")

    def wait_for_line(self, pattern: str, timeout_s: float = 60) -> re.Match[str]:
        """Return the first match of `pattern` in the server's output."""
        deadline = time.monotonic() + timeout_s
        while not (found := re.search(pattern, self.log_file.read_text(errors="replace"))):
            self._still_waiting(deadline, f"print {pattern!r}")
        return found

    def stop(self) -> int:
        """Terminate the process, kill it if it does not end, and return its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def _still_waiting(self, deadline: float, wish: str) -> None:
        status = self.process.poll()
        if status is not None or time.monotonic() > deadline:
            end = f"ended with status {status}" if status is not None else "is too slow"
            output = self.log_file.read_text(errors="replace")[-4000:]
            self.stop()
            raise AssertionError(f"{self._name} did not {wish}: it {end}\n{output}")
        time.sleep(POLL_S)


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True
