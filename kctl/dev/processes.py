"""A server that outlives the command which started it: known by a file with its process id.

A process id may be given to somebody else after its process has ended. So the file alone is not
believed: the process must have been started with the server's own configuration file.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import CliError

_STOP_TIMEOUT_S = 60
_POLL_S = 0.02


@dataclass(frozen=True)
class DevProcess:
    """One server in a directory of its own."""

    name: str
    """What it is called in messages."""
    config_file: Path
    """Part of its command line."""
    pid_file: Path

    def pid(self) -> int | None:
        """Its process, if it runs; a number left by one that has ended is not believed."""
        try:
            pid = int(self.pid_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if str(self.config_file).encode() in command and not _is_zombie(pid) else None

    def note(self, pid: int) -> None:
        """Remember the process that was started."""
        self.pid_file.write_text(f"{pid}\n")

    def signal(self, number: signal.Signals) -> bool:
        """Tell it something; False if it is not running."""
        pid = self.pid()
        if pid is None:
            return False
        os.kill(pid, number)
        return True

    def wait_until_ended(self) -> None:
        """Return when it has ended; CliError if it does not."""
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while (pid := self.pid()) is not None:
            if time.monotonic() > deadline:
                raise CliError(f"{self.name} (process {pid}) does not end", "kctl dev kill")
            time.sleep(_POLL_S)
        self.pid_file.unlink(missing_ok=True)


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and only waits to be collected (by us, when we started it)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
