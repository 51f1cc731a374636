"""Conditions of `--fail-if`, such as `lag>1000`."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kctl.cli.times import parse_duration_ms
from kctl.model.lag import GroupLag

_FORM: Final = re.compile(r"\s*([a-z-]+)\s*(>=|<=|==|!=|>|<|=)\s*(\S+)\s*")
_OPERATORS: Final[dict[str, Callable[[int, int], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_MEASURES: Final[dict[str, Callable[[GroupLag], int | None]]] = {
    "lag": lambda group: group.max_lag,
    "total-lag": lambda group: group.total_lag,
    "time-lag": lambda group: group.max_time_lag_ms,
    "members": lambda group: len(group.group.members),
}


@dataclass(frozen=True)
class Condition:
    """A measure of a group, compared with a limit."""

    text: str
    measure: str
    sign: str
    limit: int

    def holds(self, group: GroupLag) -> bool:
        """Whether the condition holds; an unknown value never fulfils it."""
        value = _MEASURES[self.measure](group)
        return value is not None and _OPERATORS[self.sign](value, self.limit)


def parse_condition(text: str) -> Condition:
    """Parse `lag>1000`, `total-lag>=1`, `time-lag>5m` or `members<1`; ValueError if malformed."""
    match = _FORM.fullmatch(text)
    if not match or match[1] not in _MEASURES:
        known = ", ".join(_MEASURES)
        raise ValueError(
            f"{text!r} is not a condition; expected e.g. lag>1000, with one of {known}"
        )
    measure, sign, value = match.groups()
    if measure == "time-lag":
        limit = parse_duration_ms(value)
    elif value.isdecimal():
        limit = int(value)
    else:
        raise ValueError(f"{text!r}: {value!r} is not a number")
    return Condition(text.strip(), measure, sign, limit)
