"""Starts a broker as a separate process and waits until it accepts requests."""

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kctl.cli.errors import CliError

_STARTED = re.compile(r"started broker\.id=(\d+) listeners=\w+://(\S+:\d+)")
_ADMIN = re.compile(r"admin port is open url=(\S+)")
_REASON = "kctl-broker: "
"""Prefix of the last line of a broker that cannot start."""
_START_TIMEOUT_S = 60
_POLL_S = 0.01


@dataclass(frozen=True)
class StartingBroker:
    """A broker process, and where its part of the log file begins.

    The log file is appended to, so that the history of earlier runs is kept.
    """

    process: subprocess.Popen[bytes]
    log_file: Path
    log_position: int
    """Size of the log file before the start, in bytes."""

    def wait_until_started(self) -> str:
        """The `host:port` it listens on; CliError with the reason from its log if it fails."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            if address := started_address(self.log_file, self.log_position):
                return address
            time.sleep(_POLL_S)
        raise CliError("the broker did not start", self._reason() or f"see {self.log_file}")

    def _reason(self) -> str:
        """The broker's own error line if there is one; else the end of its log."""
        lines = _read_from(self.log_file, self.log_position).strip().splitlines()
        if lines and lines[-1].startswith(_REASON):
            return lines[-1].removeprefix(_REASON)
        return " ".join(lines[-3:])

    def detach(self) -> None:
        """Let the process outlive this command: Popen must not warn that it still runs."""
        self.process.returncode = 0

    def stop(self, timeout_s: float = 30) -> None:
        """Terminate the process; kill it if it has not ended in time."""
        self.process.terminate()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_broker(arguments: Sequence[str], log_file: Path) -> StartingBroker:
    """Start a broker in a session of its own, so that Ctrl-C in this terminal does not end it."""
    with log_file.open("ab") as log:
        position = log.tell()
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "broker", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return StartingBroker(process, log_file, position)


def started_address(log_file: Path, position: int = 0) -> str | None:
    """The address in the newest start message from `position` on, if any."""
    try:
        found = _STARTED.findall(_read_from(log_file, position))
    except OSError:
        return None
    return found[-1][1].split(",")[0] if found else None


def admin_url(log_file: Path) -> str | None:
    """The URL of the admin port in the newest start message, if any."""
    try:
        found = _ADMIN.findall(_read_from(log_file, 0))
    except OSError:
        return None
    return found[-1] if found else None


def _read_from(log_file: Path, position: int) -> str:
    with log_file.open("rb") as log:
        log.seek(position)
        return log.read().decode(errors="replace")
