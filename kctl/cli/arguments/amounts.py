"""Byte amounts, rates and broker ids."""

import re
from typing import Final

from kctl.cli.errors import CliError, ExitStatus

_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?(?:/s)?", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

INT32_MAX: Final = 2**31 - 1
MAX_PARTITIONS: Final = 1_000_000
"""Partitions of one topic. Kafka has no limit, but its controller runs out of memory on a typo."""
INT64_MAX: Final = 2**63 - 1

LEAST_RATE: Final = 1024
"""Below 1 KiB/s a follower may never fetch a batch; Kafka's tool warns of this, too."""


def parse_bytes(text: str, option: str) -> int:
    """Parse `500000`, `50MB` or `1.5GiB`, optionally with `/s`; CliError if it is malformed."""
    match = _AMOUNT.fullmatch(text.strip())
    if not match:
        raise CliError(
            f"{option} {text}: expected a number of bytes",
            "e.g. 500000, 50MB, 1GiB",
            ExitStatus.USAGE,
        )
    number, unit, binary = match.groups()
    base = 1024.0 if binary else 1000.0
    return round(float(number) * base ** _POWERS[unit.lower()])


def parse_rate(text: str, option: str) -> int:
    """Parse bytes per second; CliError if the rate is below the minimum."""
    rate = parse_bytes(text, option)
    if rate < LEAST_RATE:
        raise CliError(
            f"{option} {text}: too slow, replication would never finish",
            f"the minimum is {LEAST_RATE} bytes per second",
            ExitStatus.USAGE,
        )
    return rate


def parse_broker_ids(text: str | None, option: str) -> frozenset[int]:
    """Parse `1,2,3`; CliError for malformed or repeated ids. Empty text gives no ids."""
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    if wrong := [word for word in words if not word.isdecimal()]:
        raise CliError(
            f"{option} {text}: {wrong[0]!r} is not a broker id",
            f"e.g. {option} 1,2; kctl brokers list shows the ids",
            ExitStatus.USAGE,
        )
    ids = [int(word) for word in words]
    if len(set(ids)) < len(ids):
        raise CliError(
            f"{option} {text}: a broker id is repeated", "list each broker once", ExitStatus.USAGE
        )
    return frozenset(ids)
