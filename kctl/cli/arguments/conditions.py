"""Conditions of `--fail-if`, such as `lag>1000`."""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.times import parse_duration_ms
from kctl.model.lag import GroupLag, PartitionLag, Verdict

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
_VERDICT: Final = "verdict"
Verdicts = Callable[[PartitionLag], Verdict]


@dataclass(frozen=True)
class Condition:
    """A measure of a group, compared with a limit."""

    text: str
    measure: str
    sign: str
    limit: int
    verdict: Verdict | None = None
    """The verdict of `verdict=stalled`."""

    def holds(self, group: GroupLag, verdict_of: Verdicts = lambda lag: lag.verdict) -> bool:
        """Whether the condition holds; an unknown value never fulfils it."""
        if self.verdict is not None:
            return any(verdict_of(lag) is self.verdict for lag in group.partitions)
        value = _MEASURES[self.measure](group)
        return value is not None and _OPERATORS[self.sign](value, self.limit)


def parse_condition(text: str) -> Condition:
    """Parse `lag>1000`, `total-lag>=1`, `time-lag>5m`, `members<1` or `verdict=stalled`.

    ValueError if it is malformed.
    """
    match = _FORM.fullmatch(text)
    if match and match[1] == _VERDICT:
        return _verdict_condition(text.strip(), match[2], match[3])
    if not match or match[1] not in _MEASURES:
        known = ", ".join([*_MEASURES, _VERDICT])
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


def _verdict_condition(text: str, sign: str, name: str) -> Condition:
    if sign not in ("=", "==") or name not in list(Verdict):
        known = ", ".join(Verdict)
        raise ValueError(f"{text!r}: expected verdict= and one of {known}")
    return Condition(text, _VERDICT, sign, 0, Verdict(name))


def check_conditions(
    found: Iterable[GroupLag],
    conditions: Sequence[Condition],
    verdict_of: Verdicts = lambda lag: lag.verdict,
) -> None:
    """CliError with status 3 if a condition holds for a group; names both."""
    findings = [
        f"{one.group.group_id}: {condition.text}"
        for one in found
        for condition in conditions
        if condition.holds(one, verdict_of)
    ]
    if findings:
        raise CliError("; ".join(findings), status=ExitStatus.FOUND)
