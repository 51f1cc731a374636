"""`--columns`, `--sort-by` and `--no-headers`, for every list of rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kctl.cli.errors import CliError, usage_error
from kctl.cli.tables import Column, Row


@dataclass(frozen=True)
class RowOptions:
    """Which columns to show, and in which order the rows are."""

    columns: tuple[str, ...] = ()
    """Normalised names; empty for the default columns."""
    sort_by: tuple[tuple[str, bool], ...] = ()
    """Normalised names, and whether each is in descending order."""
    headers: bool = True

    @property
    def is_default_rows(self) -> bool:
        """Whether neither columns nor an order were chosen."""
        return not (self.columns or self.sort_by)

    def require(self, columns: Sequence[Column]) -> None:
        """Usage error unless all names are among `columns`: for checks before a change."""
        row = dict.fromkeys(column.key for column in columns)
        for name in self.columns:
            _find(name, "--columns", columns, [row])
        for name, _ in self.sort_by:
            _find(name, "--sort-by", columns, [row])

    def pick(self, columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
        """The chosen columns, in the chosen order; usage error for an unknown name.

        Fields that only the formats for programs show can be chosen, too.
        """
        if not self.columns:
            return list(columns)
        return [_find(name, "--columns", columns, rows) for name in self.columns]

    def sorted(self, columns: Sequence[Column], rows: Sequence[Row]) -> list[Row]:
        """The rows in the chosen order; rows without the value come last."""
        ordered = list(rows)
        for name, descending in reversed(self.sort_by):
            column = _find(name, "--sort-by", columns, rows)
            # Durations and the like are ordered by their number, not by their text.
            key = column.raw or column.key
            known = [row for row in ordered if row.get(key) is not None]
            missing = [row for row in ordered if row.get(key) is None]
            known.sort(key=lambda row, key=key: _order(row[key]), reverse=descending)  # type: ignore[misc]
            ordered = [*known, *missing]
        return ordered


def parse_row_options(columns: str | None, sort_by: str | None, *, headers: bool) -> RowOptions:
    """The values of the options; usage error if a list is empty."""
    names = _names(columns, "--columns")
    keys = _names(sort_by, "--sort-by")
    return RowOptions(
        tuple(map(_normalised, names)),
        tuple((_normalised(key.lstrip("-+")), key.startswith("-")) for key in keys),
        headers,
    )


def _names(text: str | None, option: str) -> list[str]:
    if text is None:
        return []
    names = [name.strip() for name in text.split(",") if name.strip(" -+")]
    if not names:
        raise usage_error(f"{option} is empty", f"e.g. {option} topic,partition")
    return names


def _normalised(name: str) -> str:
    """`TIME-LAG` and `time_lag` are the same column."""
    return name.strip().lower().replace("-", "_")


def _find(name: str, option: str, columns: Sequence[Column], rows: Sequence[Row]) -> Column:
    for column in columns:
        if name in (_normalised(column.key), _normalised(column.heading)):
            return column
    for column in columns:
        if name == _normalised(column.raw):
            return Column(column.raw, right=column.right)
    keys = {_normalised(key): key for row in rows for key in row}
    if name in keys or not rows:  # without rows, the fields are not known
        return Column(keys.get(name, name))
    raise _unknown(name, option, [column.key for column in columns if not column.chart])


def _unknown(name: str, option: str, known: Iterable[str]) -> CliError:
    return usage_error(f"{option}: no column {name!r}", f"the columns are {', '.join(known)}")


def _order(value: object) -> tuple[int, object]:
    """Numbers before texts, so that any values can be compared."""
    if isinstance(value, (int, float)):
        return 0, value
    if isinstance(value, (list, tuple)):
        return 1, [_order(item) for item in value]
    return 2, str(value)
