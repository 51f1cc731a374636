"""Filters of `consume --grep`: `k:^order-`, `v:refused`, `h:trace=abc`."""

import re
from collections.abc import Callable, Iterable

from kctl.model.records import TopicRecord

Filter = Callable[[TopicRecord], bool]


def parse_filter(text: str) -> Filter:
    """A predicate on records; ValueError if the pattern is not a regular expression.

    `k:PATTERN` matches the key, `v:PATTERN` the value, `h:NAME=PATTERN` the headers of that name,
    `h:NAME` any header of that name; anything else is a pattern for the value. A pattern is a
    regular expression that may match anywhere. Null never matches.
    """
    place, colon, pattern = text.partition(":")
    if colon and place == "k":
        key = _search(pattern)
        return lambda record: key(record.key)
    if colon and place == "h":
        return _header_filter(pattern)
    value = _search(pattern if colon and place == "v" else text)
    return lambda record: value(record.value)


def _header_filter(text: str) -> Filter:
    name, equals, pattern = text.partition("=")
    if not name:
        raise ValueError("h: needs the name of a header, as in h:trace=abc")
    if not equals:
        return lambda record: any(name == header for header, _ in record.headers)
    found = _search(pattern)
    return lambda record: any(name == header and found(data) for header, data in record.headers)


def _search(pattern: str) -> Callable[[bytes | None], bool]:
    try:
        compiled = re.compile(pattern.encode())
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    return lambda data: data is not None and compiled.search(data) is not None


def all_of(filters: Iterable[Filter]) -> Filter:
    """A record passes if it passes every filter; without filters every record passes."""
    chosen = list(filters)
    return lambda record: all(passes(record) for passes in chosen)
