r"""`ssl.principal.mapping.rules`: from the distinguished name of a certificate to a user name.

    RULE:<pattern>/<replacement>/[LU]     Java's regular expressions; $1 is the first group
    DEFAULT                               the name as it is

Rules are separated by commas; a comma after a backslash is part of the rule. The first rule whose
pattern matches the whole name applies; L and U change the result to lower and upper case.
"""

import re
from typing import Final, NamedTuple

_RULE: Final = re.compile(
    r"\s*((DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?))\s*(,\s*|$)"
)
_BACK_REFERENCE: Final = re.compile(r"\$(\d+)|\\(.)|(\$)", re.DOTALL)


class NoMatchingRule(ValueError):
    """No rule applies to a name: the client is not authenticated."""


class _Rule(NamedTuple):
    pattern: "re.Pattern[str] | None"
    """None: DEFAULT."""
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The user name; None if the rule does not match."""
        if self.pattern is None:
            return name
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        user = _BACK_REFERENCE.sub(lambda part: _replaced(part, found), self.replacement)
        return {"L": user.lower, "U": user.upper}.get(self.case, user.strip)()


def _replaced(part: "re.Match[str]", found: "re.Match[str]") -> str:
    if part[1]:
        number = int(part[1])
        # An unknown group stays as it is written, as in Kafka.
        return (found[number] or "") if number <= found.re.groups else part[0]
    return part[2] or part[0]


class SslPrincipalMapper:
    """Parsed rules. ValueError if they are malformed."""

    def __init__(self, rules: str) -> None:
        self._rules = [_parse(found) for found in _split(rules)]

    def user_name(self, distinguished_name: str) -> str:
        """The user name of a certificate's subject; NoMatchingRule if no rule applies."""
        for rule in self._rules:
            user = rule.apply(distinguished_name)
            if user is not None:
                return user
        raise NoMatchingRule(f"No rules apply to {distinguished_name}")


def _split(rules: str) -> "list[re.Match[str]]":
    return [found for found in _RULE.finditer(rules.strip()) if found[0]]


def _parse(found: "re.Match[str]") -> _Rule:
    if found[2]:
        return _Rule(None)
    if found[3] is None:
        raise ValueError(f"Invalid rule: `{found[0].strip()}`")
    try:
        return _Rule(re.compile(_python_pattern(found[3])), found[4], found[5] or "")
    except re.error as error:
        raise ValueError(f"Invalid rule: `{found[0].strip()}`: {error}") from error


def _python_pattern(pattern: str) -> str:
    """Java's named groups in Python's notation; the rest is the same."""
    return re.sub(r"\(\?<(?=[a-zA-Z])", "(?P<", pattern)
