"""How log records become lines: text from clients cannot forge lines or move the cursor.

Client ids, group ids, topic names and the like reach the log in messages and in exceptions. Every
control character is written as an escape sequence, in the one place that all messages pass. Lines
of a traceback are indented, so that none can be taken for a log record.
"""

import logging
from types import TracebackType
from typing import Final

LINE_FORMAT: Final = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"

_C0 = range(0x20)
_DEL_AND_C1 = range(0x7F, 0xA0)
_LINE_SEPARATORS = (0x2028, 0x2029)
_BIDIRECTIONAL = (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that make a terminal show text in another order than it has."""

_ESCAPES: Final = {
    code: chr(code).encode("unicode_escape").decode()
    for code in (*_C0, *_DEL_AND_C1, *_LINE_SEPARATORS, *_BIDIRECTIONAL)
}
_ESCAPES_IN_TRACEBACK: Final = {
    code: escape for code, escape in _ESCAPES.items() if chr(code) not in "\n\t"
}

_ExceptionInfo = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


def escape_control_characters(text: str) -> str:
    """The text on one line, with `\\n`, `\\x1b` and so on in place of control characters."""
    return text if text.isprintable() else text.translate(_ESCAPES)


class EscapingFormatter(logging.Formatter):
    """One line per record, apart from the indented traceback of an exception."""

    def __init__(self, worker: int | None = None) -> None:
        mark = "" if worker is None else f"worker={worker} "
        super().__init__(LINE_FORMAT.replace("%(message)s", f"{mark}%(message)s"))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        """The line of a record, control characters escaped."""
        record.message = escape_control_characters(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802  # logging's name
        """A traceback, indented, control characters escaped."""
        text = super().formatException(ei).translate(_ESCAPES_IN_TRACEBACK)
        return "\n".join(f"    {line}" for line in text.split("\n"))


def configure_logging(*, verbose: bool, worker: int | None = None) -> None:
    """Log to stderr; DEBUG if verbose, else INFO. Lines of a worker begin with its number."""
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter(worker))
    level = logging.DEBUG if verbose else logging.INFO
    logging.basicConfig(handlers=[handler], level=level, force=worker is not None)
