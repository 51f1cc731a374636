"""`--fail-if 'lag>1000'`: what a check takes for a finding. Pure."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kctl.plans.lag import GroupLag
from kctl.records.times import parse_duration_ms

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
    """Something that is measured of a group, and the limit it is compared with."""

    text: str
    measure: str
    sign: str
    limit: int

    def holds(self, group: GroupLag) -> bool:
        """Whether it is so; what is not known never is."""
        value = _MEASURES[self.measure](group)
        return value is not None and _OPERATORS[self.sign](value, self.limit)


def parse_condition(text: str) -> Condition:
    """`lag>1000`, `total-lag>=1`, `time-lag>5m`, `members<1`; ValueError if it is none."""
    match = _FORM.fullmatch(text)
    if not match or match[1] not in _MEASURES:
        known = ", ".join(_MEASURES)
        raise ValueError(f"{text!r} is no condition; wanted is e.g. lag>1000, one of {known}")
    measure, sign, value = match.groups()
    if measure == "time-lag":
        limit = parse_duration_ms(value)
    elif value.isdecimal():
        limit = int(value)
    else:
        raise ValueError(f"{text!r}: {value!r} is not a number")
    return Condition(text.strip(), measure, sign, limit)
