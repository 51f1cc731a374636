"""Rows of records → lines of text in columns. Pure: no terminal, no colour.

Written here rather than drawn with rich because describing a large cluster prints thousands of
rows, and because a line that is only padded text survives grep, awk and copying.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Row = Mapping[str, object]

GAP = "   "
NOTHING = "-"


@dataclass(frozen=True)
class Column:
    """One column of a table: which value of a row it shows, and how."""

    key: str
    """The value's name in the row, in JSON and in CSV: stable."""
    title: str = ""
    """The heading; by default the key in capitals."""
    wide: bool = False
    """Shown with `-o wide` only."""
    right: bool = False
    """Aligned to the right, as numbers like to be."""

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return self.title or self.key.replace("_", "-").upper()


def cell(value: object) -> str:
    """A value as people read it: nothing is a dash, lists are joined with commas."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or NOTHING
    return str(value)


def table_lines(rows: Iterable[Row], columns: Sequence[Column]) -> list[str]:
    """The heading and one line per row; columns as wide as their widest cell, nothing trailing."""
    grid = [[column.heading for column in columns]]
    grid += [[cell(row.get(column.key)) for column in columns] for row in rows]
    widths = [max(map(display_width, cells)) for cells in zip(*grid, strict=True)]
    return [_line(cells, widths, columns) for cells in grid]


def record_lines(record: Row, columns: Sequence[Column]) -> list[str]:
    """One record as `heading: value` lines, the values below each other."""
    width = max(len(column.heading) for column in columns) + 1
    return [f"{column.heading + ':':<{width}} {cell(record.get(column.key))}" for column in columns]


def display_width(text: str) -> int:
    """How many columns `text` takes on a terminal; Chinese and emoji take two each."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # only here: most names are ASCII, and the import costs

    return cell_len(text)


def _line(cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    padded = []
    for text, width, column in zip(cells, widths, columns, strict=True):
        blanks = " " * (width - display_width(text))
        padded.append(blanks + text if column.right else text + blanks)
    return GAP.join(padded).rstrip()
