"""Rows and columns of `kctl throttle`."""

from kctl.cli.tables import Column, Row
from kctl.cli.theme import Spans, Style
from kctl.model.throttles import BROKER_THROTTLES, Throttle
from kctl.views.quantities import size_text
from kctl.views.styles import if_any


def _value_spans(row: Row) -> Spans:
    """Rates as sizes per second, lists of replicas as they are."""
    value = str(row.get("value"))
    is_rate = row.get("config") in BROKER_THROTTLES and value.isdecimal()
    return ((f"{size_text(value)}/s" if is_rate else value, None),)


COLUMNS = [
    Column("entity"),
    Column("config", priority=0),
    Column("value", priority=1, spans=_value_spans),
    Column("leaked", priority=0, style=if_any("leaked", Style.BAD)),
]


def throttle_row(throttle: Throttle) -> dict[str, object]:
    """A throttle as a row of COLUMNS."""
    return {
        "entity": str(throttle.entity),
        "config": throttle.config,
        "value": throttle.value,
        "leaked": throttle.leaked,
    }
