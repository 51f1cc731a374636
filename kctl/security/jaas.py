"""`sasl.jaas.config`: one login module with its options."""

import re
from typing import NamedTuple

from kctl.errors import CliError, ExitStatus

_LOGIN = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<rest>.*)"
)
_OPTION = re.compile(
    r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Login(NamedTuple):
    """A login module, by its class's own name, and what it is told."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"Login({self.module!r}, …)"


def parse_jaas(text: str) -> Login:
    """Read the setting; CliError, which does not quote it, if it cannot be read."""
    found = _LOGIN.match(text.replace("\n", " "))
    if not found or not found["rest"].rstrip().endswith(";"):
        raise CliError(
            "sasl.jaas.config cannot be read",
            'wanted is MODULE required username="…" password="…"; with the semicolon at the end',
            ExitStatus.USAGE,
        )
    options = {
        name: _ESCAPED.sub(r"\1", double or single) or bare
        for name, double, single, bare in _OPTION.findall(found["rest"])
    }
    return Login(found["module"].rpartition(".")[2], options)
