"""Starts a broker as a process of its own, and waits until it answers."""

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kctl.errors import CliError

_STARTED = re.compile(r"started broker\.id=(\d+) listeners=\w+://(\S+:\d+)")
_REASON = "kctl-broker: "
"""How a broker that cannot start begins its last line."""
_START_TIMEOUT_S = 60
_POLL_S = 0.01


def start_broker(arguments: Sequence[str], log_file: Path) -> subprocess.Popen[bytes]:
    """A broker in a session of its own, so that Ctrl-C here does not end it."""
    with log_file.open("wb") as log:
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "broker", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def wait_until_started(process: subprocess.Popen[bytes], log_file: Path) -> str:
    """The address it listens on, `host:port`; CliError with its last words if it does not start."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if address := started_address(log_file):
            return address
        time.sleep(_POLL_S)
    raise CliError("the broker did not start", _last_words(log_file) or f"see {log_file}")


def _last_words(log_file: Path) -> str:
    """Why it ended, in its own line if it said so; else the end of what it said."""
    lines = log_file.read_text(errors="replace").strip().splitlines()
    if lines and lines[-1].startswith(_REASON):
        return lines[-1].removeprefix(_REASON)
    return " ".join(lines[-3:])


def started_address(log_file: Path) -> str | None:
    """Where the broker that writes this log listens; None before it has started."""
    try:
        found = _STARTED.search(log_file.read_text(errors="replace"))
    except OSError:
        return None
    return found[2].split(",")[0] if found else None


def stop_process(process: subprocess.Popen[bytes], timeout_s: float = 30) -> None:
    """Ask it to end, and insist if it does not."""
    process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
