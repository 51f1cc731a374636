"""`sasl.jaas.config`: one login module with its options.

org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
"""

import re
from typing import Final, NamedTuple

_LOGIN: Final = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?i:required|requisite|sufficient|optional)\b(?P<options>.*)",
    re.DOTALL,
)
_OPTION: Final = re.compile(
    r"""\s*([\w.@+$-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""",
    re.DOTALL,
)
_END: Final = re.compile(r"\s*;\s*")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)

DISALLOWED: Final = ("JndiLoginModule", "LdapLoginModule")
"""Login modules that load code from a network; Kafka refuses them too."""


class JaasError(ValueError):
    """The setting is malformed; the text does not quote it."""


class JaasConfig(NamedTuple):
    """A login module, by its class name without package, and its options."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasConfig({self.module!r}, …)"


def parse_jaas(text: str) -> JaasConfig:
    """Parse the setting; JaasError if it is not exactly one login module."""
    found = _LOGIN.match(text)
    if not found:
        raise JaasError('expected: MODULE required username="…" password="…";')
    module = found["module"].rpartition(".")[2]
    if module in DISALLOWED:
        raise JaasError(f"{module} is not allowed")
    options, position, rest = {}, 0, found["options"]
    while option := _OPTION.match(rest, position):
        name, double, single, bare = option.groups()
        quoted = double if double is not None else single
        options[name] = bare if quoted is None else _ESCAPED.sub(r"\1", quoted)
        position = option.end()
    if not _END.fullmatch(rest, position):
        raise JaasError(
            'one login module is expected, each option as name="value", and a semicolon at the end'
        )
    return JaasConfig(module, options)
