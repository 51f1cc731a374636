"""A server that outlives the command that started it, identified by a file with its process id.

A process id can be reused after its process has ended. Therefore the file alone is not trusted:
one of the arguments of the process must be the server's own configuration file.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from kctl.cli.errors import CliError
from kctl.dev.process_table import runs_with

_STOP_TIMEOUT_S = 60
_POLL_S = 0.02


@dataclass(frozen=True)
class DevProcess:
    """One server with a directory of its own."""

    name: str
    """Its name in messages."""
    config_file: Path
    """An argument of its command line."""
    pid_file: Path

    def pid(self) -> int | None:
        """The process id if the server is running; a stale process id file is ignored."""
        try:
            pid = int(self.pid_file.read_text())
        except (OSError, ValueError):
            return None
        return pid if runs_with(pid, self.config_file) else None

    def note(self, pid: int) -> None:
        """Remember the process that was started."""
        self.pid_file.write_text(f"{pid}\n")

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False if the server is not running."""
        pid = self.pid()
        if pid is None:
            return False
        if number == signal.SIGTERM:
            os.kill(pid, signal.SIGCONT)  # a paused process would not end
        os.kill(pid, number)
        return True

    def wait_until_ended(self) -> None:
        """Return when the process has ended; CliError after a minute."""
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while (pid := self.pid()) is not None:
            if time.monotonic() > deadline:
                raise CliError(f"{self.name} (process {pid}) did not stop", "kctl dev kill")
            time.sleep(_POLL_S)
        self.pid_file.unlink(missing_ok=True)
