"""Formatting of rows as text in columns.

Not done with rich: tables of large clusters have thousands of rows, and plain padded lines work
with grep, awk and copying. Without a `Look` there is no colour and no limit of the width.

On a terminal that is too narrow, lines never wrap: columns are dropped, the least important first,
and then long cells are cut.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kctl.cli.terminal import visible
from kctl.cli.theme import Paint, Spans, Style, plain, word_style

Row = Mapping[str, object]
Name = str | Callable[[Row], str]
"""What `-o name` prints of a row: the value of a key, or the result of a function."""

GAP: Final = "   "
NOTHING: Final = "-"
ELLIPSIS: Final = "…"
DEFAULT_PRIORITY: Final = 5
_SHORTEST_CUT: Final = 20
"""Columns of text are cut to this width before one is dropped."""
_UNCUT: Final = 26
"""Columns up to this width are not cut: dates and the like are worth nothing in part."""
_SHORTEST: Final = 8
_EMPTY: Final = 100
"""The priority of columns without a single value: dropped before all others."""


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
    format: Callable[[object], str] | None = None
    """Text of a value that is not None, in tables only: human-readable sizes, for example."""
    raw: str = ""
    """The key that CSV shows instead, for a column whose value is text made for people."""
    style: Callable[[Row], Style | None] | None = None
    """The colour of a cell."""
    spans: Callable[[Row], Spans] | None = None
    """The text of a cell in pieces with their own colours; instead of `format` and `style`."""
    chart: Callable[[Sequence[Row]], Sequence[Spans]] | None = None
    """Draws one cell per row. The column exists on terminals only, not in other formats."""
    priority: int | None = None
    """0: never dropped. On a narrow terminal the column with the highest number is dropped first,
    the rightmost of equals. By default 0 for the first column of a table, else 5."""

    @property
    def heading(self) -> str:
        """The heading of the column."""
        return self.title or self.key.replace("_", "-").upper()

    def cell(self, row: Row) -> Spans:
        """The cell of a row, safe for a terminal."""
        if self.spans:
            return tuple((visible(text), style) for text, style in self.spans(row))
        value = row.get(self.key)
        text = self.format(value) if self.format and value is not None else cell(value)
        if text == NOTHING:
            return ((NOTHING, Style.FAINT),)
        return ((visible(text), self.style(row) if self.style else None),)


Columns = Sequence[Column]
"""The columns of a table; commands that only pass them on name this type."""


@dataclass(frozen=True)
class Look:
    """How a table is shown."""

    width: int | None = None
    """Columns of the terminal; None if lines may have any length."""
    paint: Paint = plain
    headers: bool = True
    charts: bool = False
    """Whether columns with charts are shown."""


PLAIN: Final = Look()


@dataclass(frozen=True)
class Table:
    """A table as lines, and the columns with values that did not fit."""

    lines: list[str]
    hidden: list[Column]


def by_word(key: str) -> Callable[[Row], Style | None]:
    """A column's style: the meaning of its status word."""
    return lambda row: word_style(str(row.get(key)))


def partition_name(row: Row) -> str:
    """`orders:0`, as arguments name a partition."""
    return f"{row['topic']}:{row['partition']}"


def name_of(row: Row, name: Name) -> str:
    """What `-o name` prints of a row."""
    return cell(row.get(name)) if isinstance(name, str) else name(row)


def cell(value: object) -> str:
    """A value as text: a dash for None, lists joined with commas."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or NOTHING
    return str(value)


def table_lines(rows: Iterable[Row], columns: Sequence[Column], look: Look = PLAIN) -> list[str]:
    """The heading and one line per row; columns as wide as their widest cell."""
    return make_table(list(rows), columns, look).lines


def make_table(rows: Sequence[Row], columns: Sequence[Column], look: Look = PLAIN) -> Table:
    """The table, fitted to the width of `look`."""
    shown = [column for column in columns if look.charts or not column.chart]
    cells = [_cells(column, rows) for column in shown]
    widths = [
        max([display_width(column.heading) if look.headers else 0, *map(_width, of_column)])
        for column, of_column in zip(shown, cells, strict=True)
    ]
    empty = {at for at, of_column in enumerate(cells) if all(map(_is_nothing, of_column))}
    if look.width:
        fitted = _fit(
            [_priority(*one, empty) for one in enumerate(shown)], shown, widths, look.width
        )
    else:
        fitted = dict(enumerate(widths))
    lines = [_heading(shown, fitted, look)] if look.headers else []
    lines += [
        _line([(shown[at], cells[at][number], width) for at, width in fitted.items()], look.paint)
        for number in range(len(rows))
    ]
    hidden = [one for at, one in enumerate(shown) if at not in fitted and at not in empty]
    return Table(lines, hidden)


def record_lines(record: Row, columns: Sequence[Column], look: Look = PLAIN) -> list[str]:
    """One record as aligned `heading: value` lines; a list too long for a line takes several."""
    width = max(len(column.heading) for column in columns) + 1
    lines = []
    for column in columns:
        value = record.get(column.key)
        spans = column.cell(record)
        heading = look.paint(f"{column.heading + ':':<{width}}", Style.FAINT)
        if look.width and isinstance(value, list) and _width(spans) > look.width - width - 1:
            items = [visible(str(item)) for item in value]
            lines += [f"{heading} {items[0]}", *(f"{'':{width}} {item}" for item in items[1:])]
        else:
            lines.append(f"{heading} {painted(spans, look.paint)}")
    return lines


def display_width(text: str) -> int:
    """The width of `text` on a terminal; wide characters count twice."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # imported here: most names are ASCII

    return cell_len(text)


def _cells(column: Column, rows: Sequence[Row]) -> Sequence[Spans]:
    return column.chart(rows) if column.chart else [column.cell(row) for row in rows]


def _width(spans: Spans) -> int:
    return sum(display_width(text) for text, _ in spans)


def _is_nothing(spans: Spans) -> bool:
    return len(spans) == 1 and spans[0][0] in (NOTHING, "")


def _fit(
    priorities: Sequence[int], columns: Sequence[Column], widths: Sequence[int], limit: int
) -> dict[int, int]:
    """The columns that fit into `limit`, by number, and their widths."""
    least = list(widths)
    kept = _dropped(list(range(len(columns))), least, priorities, limit, above=_EMPTY - 1)
    if _total(least[at] for at in kept) > limit:
        least = [_least(*one) for one in zip(columns, widths, priorities, strict=True)]
        kept = _dropped(kept, least, priorities, limit, above=0)
    fitted = {at: least[at] for at in kept}
    _cut(fitted, limit)
    spare = limit - _total(fitted.values())
    for at in kept:  # give back what cutting and dropping have left over
        added = min(spare, widths[at] - fitted[at])
        if added > 0 and fitted[at] == least[at]:
            fitted[at] += added
            spare -= added
    return fitted


def _dropped(
    kept: Sequence[int], widths: Sequence[int], priorities: Sequence[int], limit: int, *, above: int
) -> list[int]:
    """`kept` without the columns that do not fit; only those with a priority above `above`."""
    left = list(kept)
    while left and _total(widths[at] for at in left) > limit:
        last = max(left, key=lambda at: (priorities[at], at))
        if priorities[last] <= above:
            break
        left.remove(last)
    return left


def _least(column: Column, width: int, priority: int) -> int:
    """The width to which a column can be cut before columns are dropped."""
    if column.right or column.chart or not priority or width <= _UNCUT:
        return width
    return _SHORTEST_CUT


def _priority(at: int, column: Column, empty: Collection[int]) -> int:
    if at in empty and at:
        return _EMPTY
    return (DEFAULT_PRIORITY if at else 0) if column.priority is None else column.priority


def _total(widths: Iterable[int]) -> int:
    found = list(widths)
    return sum(found) + len(GAP) * max(0, len(found) - 1)


def _cut(fitted: dict[int, int], limit: int) -> None:
    """Make the widest columns narrower until the others fit, too."""
    while (excess := _total(fitted.values()) - limit) > 0:
        widest = max(fitted, key=lambda at: fitted[at])
        if fitted[widest] <= _SHORTEST:
            return  # too narrow for anything: the terminal wraps
        second = max((width for at, width in fitted.items() if at != widest), default=_SHORTEST)
        narrower = max(_SHORTEST, min(fitted[widest] - 1, second))
        fitted[widest] = max(narrower, fitted[widest] - excess)


def _heading(columns: Sequence[Column], fitted: Mapping[int, int], look: Look) -> str:
    headings = [
        (columns[at], ((columns[at].heading, None),), width) for at, width in fitted.items()
    ]
    return look.paint(_line(headings, plain), Style.HEADING)


def _line(cells: Sequence[tuple[Column, Spans, int]], paint: Paint) -> str:
    """One line; blanks at its end are left out."""
    pieces = []
    for at, (column, spans, width) in enumerate(cells):
        text = painted(fit_spans(spans, width), paint)
        blanks = " " * max(0, width - _width(spans))
        is_last = at == len(cells) - 1
        pieces.append(blanks + text if column.right else text if is_last else text + blanks)
    return GAP.join(pieces).rstrip()


def fit_spans(spans: Spans, width: int) -> Spans:
    """Spans as they are, or cut to `width` with an ellipsis at the end."""
    if _width(spans) <= width:
        return spans
    left = width - 1
    kept: list[tuple[str, Style | None]] = []
    for text, style in spans:
        while text and display_width(text) > left:
            text = text[:-1]
        kept.append((text, style))
        left -= display_width(text)
        if left <= 0:
            break
    last_style = kept[-1][1] if kept else None
    return (*kept, (ELLIPSIS + " " * left, last_style))


def painted(spans: Spans, paint: Paint) -> str:
    """The text of spans with their colours."""
    return "".join(paint(text, style) for text, style in spans)
