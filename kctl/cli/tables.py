"""Formatting of rows as text in columns; no terminal, no colour.

Not done with rich: tables of large clusters have thousands of rows, and plain padded lines work
with grep, awk and copying.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Row = Mapping[str, object]

GAP = "   "
NOTHING = "-"


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    key: str
    """The key in the row, in JSON and in CSV; stable."""
    title: str = ""
    """The heading; by default the key in capitals."""
    wide: bool = False
    """Shown with `-o wide` only."""
    right: bool = False
    """Right-aligned, for numbers."""

    @property
    def heading(self) -> str:
        """The heading of the column."""
        return self.title or self.key.replace("_", "-").upper()


def cell(value: object) -> str:
    """A value as text: a dash for None, lists joined with commas."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or NOTHING
    return str(value)


def table_lines(rows: Iterable[Row], columns: Sequence[Column]) -> list[str]:
    """The heading and one line per row; columns as wide as their widest cell."""
    grid = [[column.heading for column in columns]]
    grid += [[cell(row.get(column.key)) for column in columns] for row in rows]
    widths = [max(map(display_width, cells)) for cells in zip(*grid, strict=True)]
    return [_line(cells, widths, columns) for cells in grid]


def record_lines(record: Row, columns: Sequence[Column]) -> list[str]:
    """One record as aligned `heading: value` lines."""
    width = max(len(column.heading) for column in columns) + 1
    return [f"{column.heading + ':':<{width}} {cell(record.get(column.key))}" for column in columns]


def display_width(text: str) -> int:
    """The width of `text` on a terminal; wide characters count twice."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # imported here: most names are ASCII

    return cell_len(text)


def _line(cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    padded = []
    for text, width, column in zip(cells, widths, columns, strict=True):
        blanks = " " * (width - display_width(text))
        padded.append(blanks + text if column.right else text + blanks)
    return GAP.join(padded).rstrip()
