"""All output of kctl. Data goes to stdout, messages to stderr; colour only on a terminal.

Commands pass rows and columns, and every format shows them in its own way, so that `-o json` never
contains less than the table. The keys of rows are a public interface: keys are added, never
renamed.
"""

import csv
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TextIO

from kctl.cli.errors import CliError
from kctl.cli.tables import Column, Row, cell, record_lines, table_lines

_BOLD, _RED, _DIM, _RESET = "\x1b[1m", "\x1b[1;31m", "\x1b[2m", "\x1b[0m"


class OutputFormat(StrEnum):
    """Values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"


class Output:
    """Prints results in the selected format.

    Streams are looked up when something is written, because tests and pagers replace them.
    """

    def __init__(self, output_format: OutputFormat = OutputFormat.TABLE) -> None:
        self.format = output_format

    def rows(self, rows: Iterable[Row], columns: Sequence[Column], *, name: str) -> None:
        """Print a list; `name` is the key that `-o name` prints."""
        found = list(rows)
        if self.format in (OutputFormat.TABLE, OutputFormat.WIDE):
            self._headed(table_lines(found, self._chosen(columns)))
        elif self.format is OutputFormat.JSONL:
            self.lines(_json(row) for row in found)
        elif self.format is OutputFormat.CSV:
            _write_csv(found, columns)
        elif self.format is OutputFormat.NAME:
            self.lines(cell(row.get(name)) for row in found)
        else:
            self._document([dict(row) for row in found])

    def record(self, record: Row, columns: Sequence[Column], *, name: str) -> None:
        """Print one record: an object in YAML and JSON, a list of one in other formats."""
        if self.format in (OutputFormat.TABLE, OutputFormat.WIDE):
            self.lines(record_lines(record, self._chosen(columns)))
        elif self.format in (OutputFormat.JSON, OutputFormat.YAML):
            self._document(dict(record))
        else:
            self.rows([record], columns, name=name)

    def value(self, key: str, value: object) -> None:
        """Print one value; in formats for programs, under its key."""
        if self.format in (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.NAME):
            self.lines([cell(value)])
        else:
            self.record({key: value}, [Column(key)], name=key)

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines to stdout."""
        sys.stdout.writelines(f"{line}\n" for line in lines)

    def text(self, text: str) -> None:
        """Write text to stdout as it is."""
        sys.stdout.write(text)

    def chunks(self, chunks: Iterable[bytes]) -> None:
        """Write UTF-8 to stdout without decoding it: for large output."""
        sys.stdout.flush()  # text written before comes first
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)

    def note(self, message: str) -> None:
        """Print a message to stderr."""
        sys.stderr.write(f"{message}\n")

    def error(self, error: CliError) -> None:
        """Print an error and its remedy: two lines, or one JSON object."""
        if self.format in (OutputFormat.JSON, OutputFormat.JSONL):
            self.note(_json(_error_object(error)))
            return
        self.note(f"{styled('error:', _RED, sys.stderr)} {error.message}")
        if error.hint:
            self.note(f"{styled(' hint:', _BOLD, sys.stderr)} {error.hint}")

    def details(self, error: BaseException) -> None:
        """Print the traceback of an error, for `-v`."""
        text = "".join(traceback.format_exception(error)).rstrip()
        self.note(styled(text, _DIM, sys.stderr))

    def heading(self, title: str) -> None:
        """Print a heading to stdout."""
        self.lines([styled(title, _BOLD, sys.stdout)])

    def _chosen(self, columns: Sequence[Column]) -> list[Column]:
        return [column for column in columns if self.format is OutputFormat.WIDE or not column.wide]

    def _headed(self, lines: Sequence[str]) -> None:
        self.heading(lines[0])
        self.lines(lines[1:])

    def _document(self, document: object) -> None:
        if self.format is OutputFormat.JSON:
            self.lines([json.dumps(document, indent=2, ensure_ascii=False, default=str)])
            return
        import yaml  # imported here: the import takes longer than printing a table

        plain = json.loads(_json(document))
        yaml.safe_dump(plain, sys.stdout, sort_keys=False, allow_unicode=True)


class NoteHandler(logging.Handler):
    """Prints log records as messages, with `-v`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        Output().note(self.format(record))


def styled(text: str, style: str, stream: TextIO) -> str:
    """`text` in `style` if `stream` is a terminal and NO_COLOR is unset (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return f"{style}{text}{_RESET}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _error_object(error: CliError) -> dict[str, object]:
    return {"error": error.message, "hint": error.hint or None, "status": int(error.status)}


def _write_csv(rows: Iterable[Row], columns: Sequence[Column]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(column.key for column in columns)
    for row in rows:
        values = [row.get(column.key) for column in columns]
        writer.writerow("" if value is None else cell(value) for value in values)
