"""The progress display: a bar on a terminal, lines or nothing elsewhere."""

import os
import pty
import subprocess
import sys

import pytest

from kctl.cli.progress import progress_display

RUN = """
import sys
from kctl.cli.progress import progress_display

with progress_display() as show:
    show("batch 1/3", 5_000_000, 10_000_000)
    show("batch 2/3", 1_000_000, 10_000_000)
"""


def on_terminal(code: str) -> str:
    """What Python code writes to a stderr that is a terminal."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=slave, env=environment) as process:
        os.close(slave)
        written = b""
        try:
            while chunk := os.read(master, 65536):
                written += chunk
        except OSError:  # the other end of the terminal is closed
            pass
        finally:
            os.close(master)
    assert process.returncode == 0
    return written.decode()


def test_bar_shows_description_and_bytes_on_a_terminal() -> None:
    shown = on_terminal(RUN)
    assert "batch 2/3" in shown
    assert "1.0/10.0 MB" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the bar is removed at the end


def test_lines_are_printed_once_per_change_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines: list[str] = []
    with progress_display(note=lines.append) as show:
        show("batch 1/2", 1, 4, line="1 of 4 bytes")
        show("batch 1/2", 1, 4, line="1 of 4 bytes")
        show("batch 2/2", 4, 4, line="4 of 4 bytes")
    assert lines == ["batch 1/2: 1 of 4 bytes", "batch 2/2: 4 of 4 bytes"]
    assert capsys.readouterr().err == ""


def test_nothing_is_shown_without_a_terminal_or_when_disabled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for display in (progress_display(), progress_display(is_enabled=False, note=print)):
        with display as show:
            show("file", 1, 2)
    assert capsys.readouterr() == ("", "")
