"""Sums and roundings of values that may be unknown."""

from collections.abc import Iterable

from kctl.cli.times import format_duration


def total(values: Iterable[float | None]) -> float | None:
    """The sum of the known values; None if no value is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def rounded(value: float | None) -> float | None:
    """The value with one decimal."""
    return None if value is None else round(value, 1)


def duration(seconds: float | None) -> str | None:
    """`1m 5s`."""
    return None if seconds is None else format_duration(round(seconds * 1000))


def milliseconds(seconds: float | None) -> int | None:
    """Whole milliseconds."""
    return None if seconds is None else round(seconds * 1000)
