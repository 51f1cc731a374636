"""Validators of values beyond their type. They raise ConfigError with Kafka's messages."""

import re
from collections.abc import Callable
from typing import Any, Final

from broker.config.values import invalid_value, value_text

Validator = Callable[[str, Any], None]
"""Called with the key and the value, which may be null."""


def at_least(lowest: int) -> Validator:
    """A number >= `lowest`."""
    return between(lowest, None)


def between(lowest: float, highest: float | None) -> Validator:
    """A number from `lowest` to `highest`, inclusive."""

    def check(key: str, value: Any) -> None:
        if value < lowest:
            raise invalid_value(key, value_text(value), f"Value must be at least {lowest}")
        if highest is not None and value > highest:
            raise invalid_value(key, value_text(value), f"Value must be no more than {highest}")

    return check


def one_of(*allowed: str) -> Validator:
    """One of these words; for a list, each element."""

    def check(key: str, value: Any) -> None:
        for word in value if isinstance(value, tuple) else (value,):
            if word not in allowed:
                raise invalid_value(key, word, f"String must be one of: {', '.join(allowed)}")

    return check


def one_of_ignoring_case(*allowed: str) -> Validator:
    """One of these words, ignoring case."""

    def check(key: str, value: Any) -> None:
        if value.upper() not in allowed:
            words = ", ".join(allowed)
            raise invalid_value(key, value, f"String must be one of (case insensitive): {words}")

    return check


def not_empty(key: str, value: Any) -> None:
    """A non-empty text, or null."""
    if value == "":
        raise invalid_value(key, value, "String must be non-empty")


def gzip_level(key: str, value: Any) -> None:
    """1 to 9, or -1 for the default of the codec."""
    if not (1 <= value <= 9 or value == -1):
        raise invalid_value(key, value, "Value must be between 1 and 9 or equal to -1")


def minus_one_or_positive(key: str, value: Any) -> None:
    """A number of threads, or -1 for the value of another setting."""
    if value < -1 or value == 0:
        raise invalid_value(key, value, "Value can be -1 or greater than 0")


_REPLICA: Final = r"([0-9]+:[0-9]+)?"


def throttled_replicas(key: str, value: Any) -> None:
    """`*`, or replicas as partition:broker."""
    if "".join(value) != "*" and not all(re.fullmatch(_REPLICA, replica) for replica in value):
        shown = f"[{', '.join(value)}]"
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        wanted = f"the literal '*' or a list of replicas in the following format: {form}"
        raise invalid_value(key, shown, f"{key} must be {wanted}")


_LAST_INTERNAL_VERSION: Final = {
    "0.10.0": 1, "0.10.1": 2, "0.10.2": 0, "0.11.0": 2, "1.0": 0, "1.1": 0, "2.0": 1, "2.1": 2,
    "2.2": 1, "2.3": 1, "2.4": 1, "2.5": 0, "2.6": 0, "2.7": 2, "2.8": 1, "3.0": 1, "3.1": 0,
    "3.2": 0, "3.3": 3, "3.4": 0, "3.5": 2, "3.6": 2, "3.7": 4, "3.8": 0, "3.9": 0, "4.0": 1,
}  # fmt: skip
"""Releases of Kafka with their highest internal version (`3.7-IV4`)."""


def kafka_version(key: str, value: Any) -> None:
    """A release of Kafka (`3.9`, `3.9.1`) or an internal version of one (`3.9-IV0`)."""
    segments = 3 if value.startswith("0.") else 2
    release, dash, internal = ".".join(value.split(".")[:segments]).partition("-IV")
    if release in ("0.8.0", "0.8.1", "0.8.2", "0.9.0") and not dash:
        return
    highest = _LAST_INTERNAL_VERSION.get(release, -1)
    if highest < 0 or (dash and internal not in map(str, range(highest + 1))):
        raise invalid_value(key, value, f"Version {value} is not a valid version")
