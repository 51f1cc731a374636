"""Writes any number of rows in the chosen format without keeping them in memory.

Tables are laid out page by page. Columns never become narrower, so that rows stay aligned; usually
the first page already has the final widths.
"""

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from kctl.cli.output import Output, OutputFormat, csv_value
from kctl.cli.tables import Column, cell, table_lines
from kctl.dump.rows.log_rows import Row

PAGE_ROWS = 1000
_KEY_WIDTH, _VALUE_WIDTH = 24, 36
_ELLIPSIS = "…"


class RowWriter:
    """Shows the rows of one file after the other.

    `close` must be called at the end; in JSON it ends the list. Without `show_empty`, tables omit
    files without rows, which is useful with filters.
    """

    def __init__(self, out: Output, *, show_empty: bool = True) -> None:
        self._out = out
        self._show_empty = show_empty
        self._rows = 0
        self._files = 0
        self._header: list[str] = []

    def file(self, title: str, rows: Iterable[Row], columns: Sequence[Column], name: str) -> None:
        """Show the rows of one file; `name` is the field that `-o name` prints."""
        if self._out.options.sort_by:
            found = list(rows)  # sorting needs all rows of a file
            rows = [dict(row) for row in self._out.options.sorted(columns, found)]
        pages = _pages(rows)
        match self._out.format:
            case OutputFormat.CSV:
                self._csv(pages, columns)
            case OutputFormat.NAME:
                for page in pages:
                    self._out.lines(cell(row.get(name)) for row in page)
            case _ if self._out.format.is_for_people:
                self._table(title, pages, columns)
            case _:
                for page in pages:
                    self._documents(self._picked(page, columns))

    def close(self) -> None:
        """End the output."""
        if self._out.format is OutputFormat.JSON:
            self._out.lines(["\n]" if self._rows else "[]"])
        elif self._out.format is OutputFormat.YAML and not self._rows:
            self._out.lines(["[]"])

    def _picked(self, page: list[Row], columns: Sequence[Column]) -> list[Row]:
        """The fields of `--columns`, or all."""
        options = self._out.options
        if not options.columns:
            return page
        keys = [column.key for column in options.pick(columns, page)]
        return [{key: row.get(key) for key in keys} for row in page]

    def _documents(self, page: list[Row]) -> None:
        if self._out.format is OutputFormat.YAML:
            self._out.lines(_yaml(page))
            self._rows += len(page)
            return
        texts = [
            self._out.json_text(json.dumps(row, ensure_ascii=False, default=str)) for row in page
        ]
        if self._out.format is OutputFormat.JSONL:
            self._out.safe_lines(texts)
        else:
            begin = ",\n  " if self._rows else "[\n  "
            self._out.safe_text(begin + ",\n  ".join(texts))
        self._rows += len(page)

    def _csv(self, pages: Iterator[list[Row]], columns: Sequence[Column]) -> None:
        first = next(pages, [])
        chosen = self._out.options.pick([Column("file"), *columns], first)
        keys = [column.key for column in chosen]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if keys != self._header and self._out.options.headers:
            writer.writerow(keys)
        self._header = keys
        for page in chain([first], pages):
            writer.writerows([csv_value(row.get(key)) for key in keys] for row in page)
            self._out.text(text.getvalue())
            text.seek(text.truncate(0))

    def _table(self, title: str, pages: Iterator[list[Row]], columns: Sequence[Column]) -> None:
        is_wide = self._out.format is OutputFormat.WIDE
        # In a pipe nothing is cut: grep would miss it.
        is_cut = not is_wide and sys.stdout.isatty()
        look, options = self._out.look(), self._out.options
        chosen: list[Column] = []
        widest: Row = {}
        for number, page in enumerate(pages):
            if not number:
                self._title(title)
                chosen = options.pick(columns, page)
                if not options.columns:
                    chosen = [column for column in chosen if is_wide or not column.wide]
            shown = [_shown(row, is_cut=is_cut) for row in page]
            lines = table_lines([widest, *shown] if number else shown, chosen, look)
            self._out.safe_lines(lines[1 + look.headers :] if number else lines)
            for column in chosen:
                cells = [cell(row.get(column.key)) for row in shown]
                widest[column.key] = max([cell(widest.get(column.key)), *cells], key=len)
        if not widest and self._show_empty:
            self._title(title)
            self._out.lines(["(nothing)"])

    def _title(self, title: str) -> None:
        if self._files:
            self._out.lines([""])
        self._files += 1
        self._out.heading(title)


def _pages(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while page := list(islice(iterator, PAGE_ROWS)):
        yield page


def _yaml(page: list[Row]) -> list[str]:
    import yaml  # imported here: the import costs more than printing a table

    text: str = yaml.safe_dump(page, sort_keys=False, allow_unicode=True)
    return text.splitlines()


def _shown(row: Row, *, is_cut: bool) -> Row:
    """The row with keys, values and headers in one line, and shortened if `is_cut`."""
    cut = {"key": _KEY_WIDTH, "value": _VALUE_WIDTH, "headers": _VALUE_WIDTH}
    return row | {
        name: _short(row[name], width if is_cut else None)
        for name, width in cut.items()
        if row.get(name) is not None and "type" in row
    }


def _short(value: object, width: int | None) -> str:
    if isinstance(value, list):
        text = ",".join(f"{header['key']}={header['value']}" for header in value)
    elif isinstance(value, dict):
        text = value.get("control_type") or json.dumps(value.get("data", value), ensure_ascii=False)
    else:
        text = str(value)
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    return text if width is None or len(text) <= width else text[: width - 1] + _ELLIPSIS
