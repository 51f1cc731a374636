"""Commands on a pseudo-terminal of a given size."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.kctl import CLEAN_ENVIRONMENT

_COLOR = re.compile(r"\x1b\[[\d;]*m")
_CHUNK = 65536


@dataclass(frozen=True)
class Screen:
    """What a command wrote to its terminal, stdout and stderr together."""

    written: str
    exit_code: int

    @property
    def lines(self) -> list[str]:
        """The lines without colours, and without what clears the screen."""
        return _COLOR.sub("", self.written).replace("\x1b[H\x1b[2J", "").splitlines()

    @property
    def has_color(self) -> bool:
        """Whether any text has a colour or is bold."""
        return bool(_COLOR.search(self.written))


def run_on_terminal(
    words: Sequence[str],
    *,
    width: int = 80,
    height: int = 40,
    env: Mapping[str, str] | None = None,
    stdout: bool = True,
) -> Screen:
    """Run a command whose stderr, and stdout unless it is False, are a terminal of this size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in CLEAN_ENVIRONMENT}
    clean = {name: value for name, value in clean.items() if name not in ("COLUMNS", "LINES")}
    fixed = {name: value for name, value in CLEAN_ENVIRONMENT.items() if value is not None}
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout else subprocess.DEVNULL,
        stderr=theirs,
        env={**clean, **fixed, "TERM": "xterm-256color", **(env or {})},
    )
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, _CHUNK):
            written += chunk
    except OSError:  # the other end of the terminal is closed
        pass
    finally:
        os.close(ours)
    return Screen(written.decode(errors="replace").replace("\r\n", "\n"), process.wait())


def kctl_on_terminal(
    *args: str, width: int = 80, height: int = 40, env: Mapping[str, str] | None = None
) -> Screen:
    """Run kctl on a terminal."""
    words = [sys.executable, "-m", "kctl", *args]
    return run_on_terminal(words, width=width, height=height, env=env)
