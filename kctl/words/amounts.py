"""Bytes and ids of brokers as people write them on a command line."""

import re
from typing import Final

from kctl.errors import CliError, ExitStatus

_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?(?:/s)?", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

LEAST_RATE: Final = 1024
"""Slower than a kilobyte a second a follower never gets a batch, as Kafka's tool warns."""


def parse_bytes(text: str, option: str) -> int:
    """`500000`, `50MB`, `1.5GiB`, also with `/s`; CliError if it is none of these."""
    match = _AMOUNT.fullmatch(text.strip())
    if not match:
        raise CliError(
            f"{option} {text}: not a number of bytes", "e.g. 500000, 50MB, 1GiB", ExitStatus.USAGE
        )
    number, unit, binary = match.groups()
    base = 1024.0 if binary else 1000.0
    return round(float(number) * base ** _POWERS[unit.lower()])


def parse_rate(text: str, option: str) -> int:
    """Bytes a second, enough of them to get anywhere."""
    rate = parse_bytes(text, option)
    if rate < LEAST_RATE:
        raise CliError(
            f"{option} {text}: at that rate nothing ever arrives",
            f"the least is {LEAST_RATE} bytes a second",
            ExitStatus.USAGE,
        )
    return rate


def parse_broker_ids(text: str | None, option: str) -> frozenset[int]:
    """`1,2,3`; nothing named gives none. CliError if something is not an id, or comes twice."""
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    if wrong := [word for word in words if not word.isdecimal()]:
        raise CliError(
            f"{option} {text}: {wrong[0]!r} is not the id of a broker",
            f"e.g. {option} 1,2; kctl brokers list shows the ids",
            ExitStatus.USAGE,
        )
    ids = [int(word) for word in words]
    if len(set(ids)) < len(ids):
        raise CliError(
            f"{option} {text}: a broker is named twice", "say each once", ExitStatus.USAGE
        )
    return frozenset(ids)
