"""Filters on batches and records: offset, time, key, producer id and header."""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from broker.records.batch import BatchHeader
from broker.records.layout import CODEC_MASK, CURRENT_MAGIC
from broker.records.record import RecordTuple
from kctl.cli.errors import CliError, ExitStatus

_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_RELATIVE: Final = re.compile(r"-(\d+)([smhdw])")
_EPOCH_MS: Final = re.compile(r"\d{9,}")
_LARGEST: Final = 2**63 - 1


class Range(NamedTuple):
    """Numbers from `first` to `last`, both inclusive."""

    first: int = -_LARGEST
    last: int = _LARGEST

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.first <= number <= self.last


EVERYTHING: Final = Range()


class HeaderWanted(NamedTuple):
    """A header that a record must have; with `value` None any value matches."""

    key: str
    value: bytes | None


@dataclass(frozen=True)
class Filters:
    """The conditions that a record must meet to be shown."""

    offsets: Range = EVERYTHING
    times: Range = EVERYTHING
    keys: frozenset[bytes] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    headers: tuple[HeaderWanted, ...] = ()

    @property
    def needs_records(self) -> bool:
        """Whether the header of a batch is not enough to decide."""
        return bool(self.keys or self.headers)

    @property
    def is_empty(self) -> bool:
        """Whether everything is shown."""
        return self == Filters()

    def is_beyond(self, header: BatchHeader) -> bool:
        """Whether this and all later batches lie beyond the wanted offsets."""
        return not _hides_base_offset(header) and header.base_offset > self.offsets.last

    def may_contain(self, header: BatchHeader) -> bool:
        """Whether a record of the batch may match, judging by the header of the batch."""
        return (
            not self.is_beyond(header)
            and header.last_offset >= self.offsets.first
            and header.max_timestamp >= self.times.first
            and (not self.producer_ids or header.producer_id in self.producer_ids)
        )

    def wants_batch(self, header: BatchHeader) -> bool:
        """Whether the batch itself is shown: its first timestamp must not be too late."""
        return self.may_contain(header) and header.base_timestamp <= self.times.last

    def wants_record(self, record: RecordTuple) -> bool:
        """Whether a record is shown, given that its batch `may_contain` it."""
        offset, timestamp, key, _, headers = record
        return (
            offset in self.offsets
            and timestamp in self.times
            and (not self.keys or key in self.keys)
            and all(_has_header(wanted, headers) for wanted in self.headers)
        )


def _hides_base_offset(header: BatchHeader) -> bool:
    """Compressed messages of formats 0 and 1 have only their last offset in the header."""
    return header.magic < CURRENT_MAGIC and bool(header.attributes & CODEC_MASK)


def _has_header(wanted: HeaderWanted, headers: tuple[tuple[str, bytes | None], ...]) -> bool:
    return any(
        key == wanted.key and (wanted.value is None or value == wanted.value)
        for key, value in headers
    )


# --- parsing of options ------------------------------------------------------------------------


def parse_offsets(text: str) -> Range:
    """`100:200`, `100:`, `:200` or `150`; both ends inclusive."""
    first, colon, last = text.partition(":")
    try:
        start = int(first) if first else EVERYTHING.first
        if not colon:
            return Range(start, int(first))
        return Range(start, int(last) if last else EVERYTHING.last)
    except ValueError:
        raise _usage(
            f"--offset {text}: expected FIRST:LAST", "e.g. --offset 100:200 or --offset 100:"
        ) from None


def parse_times(text: str, now_ms: int) -> Range:
    """Two times separated by a colon; a single time is the start.

    Times may contain colons, so the separator is the colon with a valid time, or nothing, on both
    sides.
    """
    for first, last in _splits(text):
        start, end = _moment_ms(first, now_ms), _moment_ms(last, now_ms)
        if (start is not None or not first) and (end is not None or not last):
            return Range(
                EVERYTHING.first if start is None else start,
                EVERYTHING.last if end is None else end,
            )
    raise _usage(
        f"--time {text}: expected FROM:TO",
        "each end as 2026-01-31T12:00 (UTC), as milliseconds since 1970, or as -15m",
    )


def parse_moment(text: str, option: str, now_ms: int) -> int:
    """One time in milliseconds since 1970; CliError names the option if it is not valid."""
    moment = _moment_ms(text, now_ms)
    if moment is None:
        raise _usage(
            f"{option} {text}: expected a time",
            "2026-01-31T12:00 (UTC), milliseconds since 1970, or -15m",
        )
    return moment


def _splits(text: str) -> Iterator[tuple[str, str]]:
    yield text, ""
    for index, character in enumerate(text):
        if character == ":":
            yield text[:index], text[index + 1 :]


def _moment_ms(text: str, now_ms: int) -> int | None:
    """Milliseconds since 1970; None if the text is not a time."""
    if relative := _RELATIVE.fullmatch(text):
        return now_ms - int(relative[1]) * _UNITS_MS[relative[2]]
    if text == "now":
        return now_ms
    if _EPOCH_MS.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_bytes(text: str) -> bytes:
    """UTF-8 text, or the bytes of `base64:…`."""
    prefix, colon, encoded = text.partition(":")
    if prefix != "base64" or not colon:
        return text.encode()
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise _usage(f"{text}: {error}", "write base64:AAEC, or the text itself") from None


def parse_header(text: str) -> HeaderWanted:
    """`name=value`, or `name` alone for any value."""
    key, equals, value = text.partition("=")
    return HeaderWanted(key, parse_bytes(value) if equals else None)


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
