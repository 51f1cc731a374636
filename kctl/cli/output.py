"""All output of kctl. Data goes to stdout, messages to stderr; colour only on a terminal.

Commands pass rows and columns, and every format shows them in its own way, so that `-o json` never
contains less than the table. The keys of rows are a public interface: keys are added, never
renamed.

What is written to a terminal cannot control it: see `terminal`.
"""

import codecs
import csv
import json
import logging
import sys
import traceback
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, TextIO

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.row_options import RowOptions
from kctl.cli.tables import (
    Column,
    Look,
    Name,
    Row,
    cell,
    make_table,
    name_of,
    record_lines,
)
from kctl.cli.terminal import terminal_width, visible, visible_json, visible_lines
from kctl.cli.theme import Style, has_color, painter, styled
from kctl.cli.trees import Node, tree_lines


class OutputFormat(StrEnum):
    """Values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"
    TREE = "tree"
    """For commands whose data is a tree; a table elsewhere."""

    @property
    def is_for_people(self) -> bool:
        """Whether it is text in columns, whose layout may change."""
        return self in (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.TREE)


class Output:
    """Prints results in the selected format.

    Streams are looked up when something is written, because tests and pagers replace them.
    """

    def __init__(
        self,
        output_format: OutputFormat = OutputFormat.TABLE,
        options: RowOptions | None = None,
        printed: set[str] | None = None,
    ) -> None:
        self.format = output_format
        self.options = options or RowOptions()
        self._printed = set() if printed is None else printed
        """Messages that are printed once per run."""

    @property
    def is_on_terminal(self) -> bool:
        """Whether results are shown to a person, on a terminal."""
        return self.format.is_for_people and sys.stdout.isatty()

    def rows(
        self, rows: Iterable[Row], columns: Sequence[Column], *, name: Name, strict: bool = True
    ) -> None:
        """Print a list; `name` is the key that `-o name` prints, each name once.

        After a change, `strict` is False: a column that does not exist must not make it a failure.
        """
        found = list(rows)
        chosen, found = self._chosen(columns, found, strict=strict)
        if self.format.is_for_people:
            self._table(found, chosen)
        elif self.format is OutputFormat.CSV:
            write_csv(found, [column for column in chosen if not column.chart], self.options)
        elif self.format is OutputFormat.NAME:
            self.lines(dict.fromkeys(name_of(row, name) for row in found))
        else:
            self._documents([self._picked(row, chosen) for row in found])

    def record(self, record: Row, columns: Sequence[Column], *, name: Name) -> None:
        """Print one record: an object in YAML and JSON, a list of one in other formats."""
        chosen, _ = self._chosen(columns, [record], strict=True)
        if self.format.is_for_people:
            self.safe_lines(record_lines(record, chosen, self._look(sys.stdout)))
        elif self.format in (OutputFormat.JSON, OutputFormat.YAML):
            self._document(self._picked(record, chosen))
        else:
            self.rows([record], columns, name=name)

    def tree(self, root: Node) -> None:
        """Print a tree."""
        self.safe_lines(tree_lines(root, self._look(sys.stdout)))

    def value(self, key: str, value: object) -> None:
        """Print one value; in formats for programs, under its key."""
        if self.format.is_for_people or self.format is OutputFormat.NAME:
            self.lines([cell(value)])
        else:
            self.record({key: value}, [Column(key)], name=key)

    def nothing(self, message: str) -> None:
        """Report that there was nothing to do; programs get an empty list."""
        if self.format in (OutputFormat.JSON, OutputFormat.YAML):
            self._document([])
        self.note(message)

    def plan(self, rows: Sequence[Row], columns: Sequence[Column]) -> None:
        """Print a table to stderr, above a prompt."""
        for line in make_table(rows, self._for_people(columns), self._look(sys.stderr)).lines:
            sys.stderr.write(f"{line}\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines to stdout."""
        escape = visible_lines if sys.stdout.isatty() else str
        sys.stdout.writelines(f"{escape(line)}\n" for line in lines)

    def safe_lines(self, lines: Iterable[str]) -> None:
        """Write lines to stdout that contain colours, and no other control characters."""
        sys.stdout.writelines(f"{line}\n" for line in lines)

    def safe_text(self, text: str) -> None:
        """Write text to stdout that contains colours, and no other control characters."""
        sys.stdout.write(text)

    def text(self, text: str) -> None:
        """Write text to stdout as it is."""
        sys.stdout.write(visible_lines(text) if sys.stdout.isatty() else text)

    def clear_screen(self) -> None:
        """Clear the terminal."""
        sys.stdout.write("\x1b[H\x1b[2J")

    def chunks(self, chunks: Iterable[bytes]) -> None:
        """Write UTF-8 to stdout without decoding it: for large output."""
        sys.stdout.flush()  # text written before comes first
        if sys.stdout.isatty():
            decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
            for chunk in chunks:
                sys.stdout.write(visible_lines(decoder.decode(chunk)))
            return
        self.safe_chunks(chunks)

    def safe_chunks(self, chunks: Iterable[bytes]) -> None:
        """Write bytes to stdout that are safe for a terminal, or not for one."""
        sys.stdout.flush()
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)

    def note(self, message: str, style: Style | None = None) -> None:
        """Print a message to stderr."""
        text = visible_lines(message) if sys.stderr.isatty() else message
        sys.stderr.write(f"{painter(sys.stderr)(text, style)}\n")

    def error(self, error: CliError) -> None:
        """Print an error and its remedy: two lines, or one JSON object."""
        if self.format in (OutputFormat.JSON, OutputFormat.JSONL):
            self.note(_json(_error_object(error)))
            return
        escape = visible_lines if sys.stderr.isatty() else str
        lines = [f"{styled('error:', Style.ALARM, sys.stderr)} {escape(error.message)}"]
        if error.hint:
            lines.append(f"{styled(' hint:', Style.HEADING, sys.stderr)} {escape(error.hint)}")
        sys.stderr.writelines(f"{line}\n" for line in lines)

    def details(self, error: BaseException) -> None:
        """Print the traceback of an error, for `-v`."""
        self.note("".join(traceback.format_exception(error)).rstrip(), Style.FAINT)

    def heading(self, title: str) -> None:
        """Print a heading to stdout."""
        self.safe_lines([styled(visible(title), Style.HEADING, sys.stdout)])

    def look(self) -> Look:
        """How tables on stdout are shown."""
        return self._look(sys.stdout)

    def json_text(self, text: str) -> str:
        """JSON as stdout shows it: on a terminal without control characters, and in colour."""
        if not sys.stdout.isatty() and not has_color(sys.stdout):
            return text
        from kctl.cli.json_colors import highlighted  # imported here: only for people

        safe = visible_json(text)
        return highlighted(safe) if has_color(sys.stdout) else safe

    def _look(self, stream: TextIO) -> Look:
        # Columns that were asked for are shown in full.
        width = None if self.options.columns else terminal_width(stream)
        return Look(width, painter(stream), self.options.headers, charts=stream.isatty())

    def _chosen(
        self, columns: Sequence[Column], rows: list[Row], *, strict: bool
    ) -> tuple[list[Column], list[Row]]:
        """The columns to show, and the rows in their order."""
        try:
            chosen = self.options.pick(columns, rows)
            rows = self.options.sorted(columns, rows)
        except CliError as error:
            if strict or error.status is not ExitStatus.USAGE:
                raise
            self.note(f"{error.message}: {error.hint}")
            chosen = list(columns)
        if self.format.is_for_people and not self.options.columns:
            chosen = self._for_people(chosen)
        return chosen, rows

    def _for_people(self, columns: Sequence[Column]) -> list[Column]:
        """The columns of a table: those for `-o wide` only with that format."""
        is_wide = self.format is OutputFormat.WIDE
        return [column for column in columns if is_wide or not column.wide]

    def _picked(self, row: Row, chosen: Sequence[Column]) -> dict[str, object]:
        """The fields of a row for programs: all, or those of `--columns`."""
        if not self.options.columns:
            return dict(row)
        return {column.key: row.get(column.key) for column in chosen if not column.chart}

    def _table(self, rows: Sequence[Row], columns: Sequence[Column]) -> None:
        table = make_table(rows, columns, self._look(sys.stdout))
        self.safe_lines(table.lines)
        hidden = [column.heading for column in table.hidden if not column.chart]
        if hidden:
            sys.stdout.flush()  # the message follows the table
            self._note_once(f"columns that did not fit: {', '.join(hidden)}; see --columns")

    def _note_once(self, message: str) -> None:
        if message not in self._printed:
            self._printed.add(message)
            self.note(message, Style.FAINT)

    def _documents(self, documents: list[dict[str, object]]) -> None:
        if self.format is OutputFormat.JSONL:
            self.safe_lines(self.json_text(_json(document)) for document in documents)
        else:
            self._document(documents)

    def _document(self, document: object) -> None:
        if self.format is OutputFormat.JSON:
            text = json.dumps(document, indent=2, ensure_ascii=False, default=str)
            self.safe_lines([self.json_text(text)])
            return
        import yaml  # imported here: the import takes longer than printing a table

        plain = json.loads(_json(document))
        yaml.safe_dump(plain, sys.stdout, sort_keys=False, allow_unicode=True)


class NoteHandler(logging.Handler):
    """Prints log records as messages, with `-v`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        Output().note(self.format(record))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _error_object(error: CliError) -> dict[str, object]:
    return {"error": error.message, "hint": error.hint or None, "status": int(error.status)}


def write_csv(rows: Iterable[Row], columns: Sequence[Column], options: RowOptions) -> None:
    """Write rows to stdout as CSV: numbers as numbers, durations in milliseconds."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    keys = [column.raw or column.key for column in columns]
    if options.headers:
        writer.writerow(keys)
    for row in rows:
        writer.writerow(csv_value(row.get(key)) for key in keys)


def csv_value(value: object) -> Any:
    """A value for a CSV writer.

    Null is empty, booleans are true and false, lists of values are joined with commas, and anything
    nested is JSON.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)) and not any(isinstance(v, (dict, list)) for v in value):
        return ",".join(map(str, value))
    return _json(value) if isinstance(value, (dict, list)) else value
