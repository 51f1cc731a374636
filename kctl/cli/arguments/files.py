"""Text files named on the command line."""

import json
import sys
from pathlib import Path

from kctl.cli.errors import CliError
from kctl.cli.text_files import read_small_text

STDIN = "-"

BAD_JSON = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a JSON document of another form raises."""


def read_text(path: Path | str) -> str:
    """The text of a UTF-8 file, or of stdin for `-`; CliError if it cannot be read."""
    try:
        if str(path) == STDIN:
            return sys.stdin.read()
        return read_small_text(Path(path))
    except UnicodeDecodeError as error:
        raise CliError(f"cannot read {path}: it is not a text file", "check the path") from error
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror}", "check the path") from error


def json_reason(error: Exception) -> str:
    """Why a JSON document is not of the expected form, in words."""
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, ValueError):
        # Python's own words for int("x").
        return "a value is not a number" if "invalid literal" in str(error) else str(error)
    if isinstance(error, OverflowError):
        return "a number is out of range"
    return "it has another structure"
