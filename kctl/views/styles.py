"""Colours and charts of columns that several views share."""

from collections.abc import Callable, Iterable, Sequence

from kctl.cli.charts import bar
from kctl.cli.tables import Column, Row
from kctl.cli.theme import Spans, Style
from kctl.views.quantities import size_text

BAR_WIDTH = 12
ALMOST_FULL, FULL = 0.8, 0.95
"""Shares of a disk from which its use is shown as a warning or as a problem."""


def size_column(key: str, title: str = "SIZE", **others: object) -> Column:
    """A column of bytes."""
    return Column(key, title, right=True, format=size_text, **others)  # type: ignore[arg-type]


def if_any(key: str, style: Style) -> Callable[[Row], Style | None]:
    """`style` for a number above 0, or for true; zeros are faint."""
    return lambda row: style if row.get(key) else Style.FAINT


def always(style: Style) -> Callable[[Row], Style | None]:
    """The same style for all cells."""
    return lambda _: style


def marked(ids: Iterable[int], style_of: Callable[[int], Style | None]) -> Spans:
    """Broker ids joined with commas, each in its own style."""
    spans: list[tuple[str, Style | None]] = []
    for broker in ids:
        spans += [(",", None)] * bool(spans)
        spans.append((str(broker), style_of(broker)))
    return tuple(spans) or (("-", None),)


def bars(key: str) -> Callable[[Sequence[Row]], list[Spans]]:
    """Bars as long as the values of `key`, beside the largest of the table."""

    def draw(rows: Sequence[Row]) -> list[Spans]:
        values = [_number(row.get(key)) for row in rows]
        largest = max(values, default=0.0)
        return [_bar(value / largest if largest else 0.0, Style.NAME) for value in values]

    return draw


def usage_bars(usable: str, total: str) -> Callable[[Sequence[Row]], list[Spans]]:
    """Bars of the used share of a disk: `███████▎     62%`."""

    def draw(row: Row) -> Spans:
        size, free = _number(row.get(total)), row.get(usable)
        if not size or free is None:
            return (("", None),)
        used = 1 - _number(free) / size
        return usage_bar(used)

    return lambda rows: [draw(row) for row in rows]


def usage_bar(used: float) -> Spans:
    """A bar of a share, and the share in percent."""
    style = usage_style(used)
    return (*_bar(used, style), (f" {used:4.0%}", style))


def usage_style(used: float) -> Style:
    """The style of a share of a disk."""
    return Style.BAD if used >= FULL else Style.WARN if used >= ALMOST_FULL else Style.GOOD


def _bar(share: float, style: Style) -> Spans:
    drawn = bar(share, BAR_WIDTH)
    return ((drawn, style), ("·" * (BAR_WIDTH - len(drawn)), Style.FAINT))


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
