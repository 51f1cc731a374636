"""A scrolling table with a cursor, drawn by the same code as the tables of all other commands.

Textual's own DataTable keeps a styled object per cell, which is slow with thousands of rows, and
does not know which columns to drop on a narrow terminal.
"""

from collections.abc import Sequence
from dataclasses import replace

from rich.segment import Segment
from rich.style import Style as RichStyle
from rich.text import Text
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kctl.cli.row_options import RowOptions
from kctl.cli.tables import Column, Look, Row, cell, make_table
from kctl.cli.theme import paint

_CURSOR = RichStyle(reverse=True)


class RowsTable(ScrollView, can_focus=True):
    """Rows in the chosen order, filtered.

    *Invariant*: `_lines` has one line per row of `_shown`, after the heading.
    """

    DEFAULT_CSS = """
    RowsTable { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    """

    class Opened(Message):
        """Enter was pressed, or a row was clicked twice."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: Sequence[Column] = ()
        self.identity: tuple[str, ...] = ()
        self.sort: tuple[str, bool] | None = None
        self.filter = ""
        self._rows: Sequence[Row] = ()
        self._shown: Sequence[Row] = ()
        self._lines: list[str] = []
        self._cursor = 0

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor."""
        return self._shown[self._cursor] if self._shown else None

    @property
    def num_rows(self) -> tuple[int, int]:
        """The number of rows shown, and the number of all rows."""
        return len(self._shown), len(self._rows)

    @property
    def sortable(self) -> list[Column]:
        """The columns that rows can be sorted by."""
        return [column for column in self.columns if not column.chart and not column.wide]

    def text(self) -> str:
        """What the table shows, without colours."""
        return "\n".join(Text.from_ansi(line).plain for line in self._lines)

    def show(self, rows: Sequence[Row]) -> None:
        """Show other rows; the cursor stays on its row, or near it if that is gone."""
        under = self._key(self.cursor_row)
        self._rows = rows
        self._draw()
        keys = [self._key(row) for row in self._shown]
        last = max(0, len(keys) - 1)
        self._move(keys.index(under) if under in keys else min(self._cursor, last))

    def to_top(self) -> None:
        """Put the cursor on the first row."""
        self._move(0)

    def move(self, by: int) -> None:
        """Move the cursor by rows."""
        self._move(self._cursor + by)

    def page(self, by: int) -> None:
        """Move the cursor by screens."""
        self.move(by * max(1, self.size.height - 2))

    def sort_beside(self, step: int) -> None:
        """Sort by the next column that is shown, or the one before."""
        keys = [column.key for column in self.sortable]
        at = keys.index(self.sort[0]) if self.sort and self.sort[0] in keys else -(step > 0)
        column = self.sortable[(at + step) % len(keys)]
        self.sort = (column.key, column.right)  # numbers: the largest first
        self.show(self._rows)

    def invert(self) -> None:
        """Invert the order."""
        key, descending = self.sort or (self.sortable[0].key, False)
        self.sort = (key, not descending)
        self.show(self._rows)

    def set_filter(self, text: str) -> None:
        """Show only rows with this text in a cell."""
        self.filter = text
        self.show(self._rows)

    # --- drawing ----------------------------------------------------------------------------------

    def _draw(self) -> None:
        wanted = [column for column in self.columns if not column.wide]
        rows = [row for row in self._rows if self._matches(row)]
        if self.sort is not None:
            rows = RowOptions(sort_by=(self.sort,)).sorted(self.columns, rows)
        self._shown = rows
        marked = [self._with_mark(column) for column in wanted]
        width = max(20, self.size.width - 2)
        self._lines = make_table(rows, marked, Look(width, paint, charts=True)).lines
        self.virtual_size = Size(0, len(rows) + 1)
        self.refresh()

    def _with_mark(self, column: Column) -> Column:
        if self.sort is None or self.sort[0] != column.key:
            return column
        return replace(column, title=f"{column.heading}{'↓' if self.sort[1] else '↑'}")

    def _matches(self, row: Row) -> bool:
        wanted = self.filter.lower()
        if not wanted:
            return True
        keys = (column.key for column in self.columns if not column.chart)
        return any(wanted in cell(row.get(key)).lower() for key in keys)

    def _key(self, row: Row | None) -> tuple[object, ...] | None:
        return None if row is None else tuple(str(row.get(key)) for key in self.identity)

    def _move(self, to: int) -> None:
        self._cursor = min(max(0, to), max(0, len(self._shown) - 1))
        # The heading covers the first line of the window.
        top, height = self.scroll_offset.y, max(1, self.size.height - 1)
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, immediate=True)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, immediate=True)
        self.refresh()

    def on_resize(self) -> None:
        """Fit the columns to the new width."""
        self._draw()
        self._move(self._cursor)

    def render_line(self, y: int) -> Strip:
        """One line of the window: the heading stays."""
        number = 0 if y == 0 else self.scroll_offset.y + y
        if number >= len(self._lines):
            return Strip.blank(self.size.width)
        line = self._lines[number]
        text = Text.from_ansi(f" {line}")
        if number and number - 1 == self._cursor and self.has_focus_within:
            plain_text = text.plain.ljust(self.size.width)
            return Strip([Segment(plain_text, _CURSOR)]).crop(0, self.size.width)
        strip = Strip(text.render(self.app.console))
        return strip.extend_cell_length(self.size.width).crop(0, self.size.width)

    def on_click(self, event: Click) -> None:
        """Move the cursor to the clicked row; a second click opens it."""
        to = self.scroll_offset.y + event.y - 1
        if event.y == 0 or to >= len(self._shown):
            return
        if to == self._cursor and event.chain > 1:
            self.post_message(self.Opened())
        self._move(to)
