"""The processes of clients that `kill_loop` watches, and how far each client has come."""

import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from tests.support.real_kafka import java_command

JAVA_SOURCE = Path(__file__).with_name("KillLoopClients.java")
JAVA_ROLES = ("feeder", "member-1", "member-2", "transformer-1", "transformer-2")


class Progress:
    """What one client has reported."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.commits = 0
        """Acknowledged commits so far."""
        self.details: list[str] = []
        """By commit: what was committed, as the client prints it."""
        self.replaced = 0
        """How often the client replaced its producer after a fatal error."""
        self._pauses: list[tuple[float, str]] = []
        """Seconds between two commits, and when the second one came."""
        self._last_s = time.monotonic()
        self._errors: deque[str] = deque(maxlen=3)

    def take(self, what: str, detail: str) -> None:
        """Note one line of the client."""
        if what == "commit":
            self.commits += 1
            self.details.append(detail)
            now_s = time.monotonic()
            self._pauses.append((now_s - self._last_s, time.strftime("%H:%M:%S")))
            self._last_s = now_s
        elif what == "replaced":
            self.replaced += 1
        else:
            self._errors.append(f"{time.strftime('%H:%M:%S')} {detail}")

    def forget_pauses(self) -> None:
        """Measure pauses from now on."""
        self._pauses = []
        self._last_s = time.monotonic()

    def __str__(self) -> str:
        current = (time.monotonic() - self._last_s, "not over")
        longest = sorted([*self._pauses, current], reverse=True)[:3]
        pauses = ", ".join(f"{pause_s:.1f} s ({end})" for pause_s, end in longest)
        return (
            f"{self.role}: commits={self.commits} replaced={self.replaced} "
            f"longest pauses: {pauses}; last errors: {list(self._errors)}"
        )


class ClientProcess:
    """One process with one or several clients; it prints a line for each step of each."""

    def __init__(self, command: list[str], roles: tuple[str, ...], log_file: Path) -> None:
        self.progress = {role: Progress(role) for role in roles}
        self.replaced = 0
        """How many processes hung and were replaced."""
        self._command = command
        self._log_file = log_file
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        with self._log_file.open("ab") as log:
            process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines, self._log_file.open("a") as log:
            for line in lines:
                what, _, rest = line.strip().partition(" ")
                role, _, detail = rest.partition(" ")
                if role in self.progress:
                    self.progress[role].take(what, detail)
                if what != "commit":
                    log.write(f"{time.strftime('%H:%M:%S')} {line}")

    def replace(self) -> None:
        """Replace a process that hangs."""
        self.stop()
        self.replaced += 1
        self._process = self._start()

    def stop(self) -> None:
        """End the process, as a crash would."""
        self._process.kill()
        self._process.wait()


def librdkafka_clients(servers: str, directory: Path) -> list[ClientProcess]:
    """One process for each role, because librdkafka can deadlock: see `kill_loop`."""
    module = [sys.executable, "-m", "tests.group.kill_loop_clients"]
    return [
        ClientProcess([*module, role, servers], (role,), directory / f"{role}.log")
        for role in ("feeder", "member-1", "member-2", "transformer-1")
    ]


def java_clients(servers: str, directory: Path) -> list[ClientProcess]:
    """All roles in one process, compiled by Java as it starts."""
    command = java_command(str(JAVA_SOURCE), servers, *JAVA_ROLES)
    return [ClientProcess(command, JAVA_ROLES, directory / "java-clients.log")]


CLIENTS: dict[str, Callable[[str, Path], list[ClientProcess]]] = {
    "java": java_clients,
    "librdkafka": librdkafka_clients,
}
