"""The one room that prints. Data goes to stdout, messages to stderr; colour only on a terminal.

Every listing command hands over the same thing, rows and columns, and each format shows it in its
own way, so that `-o json` can never say less than the table. The keys of rows are part of kctl's
interface: they are added to, never renamed.
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

from kctl.errors import CliError
from kctl.tables import Column, Row, cell, record_lines, table_lines

_BOLD, _RED, _DIM, _RESET = "\x1b[1m", "\x1b[1;31m", "\x1b[2m", "\x1b[0m"


class OutputFormat(StrEnum):
    """What `-o` takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"


class Output:
    """Shows what a command found in the format that was asked for.

    Streams are looked up when something is written, not before: tests and pagers replace them.
    """

    def __init__(self, output_format: OutputFormat = OutputFormat.TABLE) -> None:
        self.format = output_format

    def rows(self, rows: Iterable[Row], columns: Sequence[Column], *, name: str) -> None:
        """Show a list; `name` is the key that identifies a row (what `-o name` prints)."""
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
        """Show one thing; in YAML and JSON an object, in the other formats a list of one."""
        if self.format in (OutputFormat.TABLE, OutputFormat.WIDE):
            self.lines(record_lines(record, self._chosen(columns)))
        elif self.format in (OutputFormat.JSON, OutputFormat.YAML):
            self._document(dict(record))
        else:
            self.rows([record], columns, name=name)

    def value(self, key: str, value: object) -> None:
        """Show one value: alone where people read, under its key where programs do."""
        if self.format in (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.NAME):
            self.lines([cell(value)])
        else:
            self.record({key: value}, [Column(key)], name=key)

    def lines(self, lines: Iterable[str]) -> None:
        """Write data to stdout as it is, a line each."""
        sys.stdout.writelines(f"{line}\n" for line in lines)

    def text(self, text: str) -> None:
        """Write a piece of data to stdout, line ends included."""
        sys.stdout.write(text)

    def chunks(self, chunks: Iterable[bytes]) -> None:
        """Write pieces of UTF-8 to stdout as they are: for output too large to encode again."""
        sys.stdout.flush()  # what was written as text comes first
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)

    def note(self, message: str) -> None:
        """Tell the user something that is not data."""
        sys.stderr.write(f"{message}\n")

    def error(self, error: CliError) -> None:
        """Say what is wrong and what to do: two lines, or one JSON object for programs."""
        if self.format in (OutputFormat.JSON, OutputFormat.JSONL):
            self.note(_json(_error_object(error)))
            return
        self.note(f"{styled('error:', _RED, sys.stderr)} {error.message}")
        if error.hint:
            self.note(f"{styled(' hint:', _BOLD, sys.stderr)} {error.hint}")

    def details(self, error: BaseException) -> None:
        """Where an error came from, for `-v`."""
        text = "".join(traceback.format_exception(error)).rstrip()
        self.note(styled(text, _DIM, sys.stderr))

    def heading(self, title: str) -> None:
        """A title above what follows, on stdout."""
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
        import yaml  # only here: the import costs more than printing a table

        plain = json.loads(_json(document))
        yaml.safe_dump(plain, sys.stdout, sort_keys=False, allow_unicode=True)


class NoteHandler(logging.Handler):
    """Shows log records as notes: what `-v` turns on."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        Output().note(self.format(record))


def styled(text: str, style: str, stream: TextIO) -> str:
    """`text` in `style` where `stream` is a terminal and NO_COLOR is unset (no-color.org)."""
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
