"""Standard streams that cannot be used: closed, full, or unable to encode a character."""

import os
import sys
from typing import Literal, TextIO

from kctl.cli.errors import CliError


def prepare_streams() -> None:
    """Make every later write possible; CliError if stdout is closed (`>&-`).

    A closed descriptor would be reused by the next socket, and results would go there.
    """
    if sys.stdin is None:
        sys.stdin = _null("r")
    if sys.stderr is None:
        sys.stderr = _null("w")
    if sys.stdout is None:
        sys.stdout = _null("w")
        raise CliError("stdout is closed: nothing was done", "redirect it to a file or /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_stdout() -> None:
    """Write what is buffered; discard it if that is impossible."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()


def discard_stdout() -> None:
    """Discard the rest of the output; else Python reports an error when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _null(mode: Literal["r", "w"]) -> TextIO:
    return open(os.devnull, mode)  # noqa: PTH123 - for the rest of the run
