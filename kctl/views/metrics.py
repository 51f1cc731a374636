"""Rows and columns of `kctl metrics`."""

from collections.abc import Iterable

from kctl.cli.tables import Column
from kctl.model.metrics import Series

COLUMNS = [
    Column("name"),
    Column("labels", format=lambda labels: _labels(labels)),
    Column("value", right=True, priority=0),
]


def _labels(labels: object) -> str:
    assert isinstance(labels, dict)  # noqa: S101  # made by `series_rows`
    return " ".join(f"{key}={value}" for key, value in labels.items())


def series_rows(series: Iterable[Series]) -> list[dict[str, object]]:
    """A row of COLUMNS per series; whole numbers without a decimal point."""
    return [
        {
            "name": one.name,
            "labels": dict(one.labels),
            "value": int(one.value) if one.value.is_integer() else one.value,
        }
        for one in series
    ]
