"""`sasl.jaas.config`: one login module with its options."""

import re
from typing import NamedTuple

from kctl.cli.errors import CliError, ExitStatus

_LOGIN = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<rest>.*)"
)
_OPTION = re.compile(
    r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Login(NamedTuple):
    """A login module, by its class name, and its options."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"Login({self.module!r}, …)"


def parse_jaas(text: str) -> Login:
    """Parse the setting; CliError, which does not quote it, if it is malformed."""
    found = _LOGIN.match(text.replace("\n", " "))
    if not found or not found["rest"].rstrip().endswith(";"):
        raise CliError(
            "sasl.jaas.config is malformed",
            'expected: MODULE required username="…" password="…"; including the final semicolon',
            ExitStatus.USAGE,
        )
    options = {
        name: _ESCAPED.sub(r"\1", double or single) or bare
        for name, double, single, bare in _OPTION.findall(found["rest"])
    }
    return Login(found["module"].rpartition(".")[2], options)
