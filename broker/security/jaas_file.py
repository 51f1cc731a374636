"""A JAAS file: login modules by section, as Java's `java.security.auth.login.config` names one.

KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
    user_alice="secret";
};
"""

import re
from collections.abc import Mapping
from typing import Final

from broker.security.jaas import JaasError

_SPACE: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NAME: Final = re.compile(r'"([^"]+)"|([\w.$-]+)')
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[;{}]|[^\s;{}"'/]+|/""",
    re.DOTALL,
)


def parse_jaas_file(text: str) -> Mapping[str, list[str]]:
    """The entries of each section, each in the form of `sasl.jaas.config`.

    JaasError, which does not quote the file, if it is malformed.
    """
    sections: dict[str, list[str]] = {}
    position = _skip_space(text, 0)
    while position < len(text):
        name = _NAME.match(text, position)
        start = _skip_space(text, name.end()) if name else position
        if name is None or text[start : start + 1] != "{":
            raise _malformed(text, position, "expected: SECTION {")
        entries, position = _entries(text, start + 1)
        sections[name[1] or name[2]] = entries
        position = _skip_space(text, position)
        if text[position : position + 1] != ";":
            raise _malformed(text, position, "a section ends with };")
        position = _skip_space(text, position + 1)
    return sections


def _entries(text: str, position: int) -> tuple[list[str], int]:
    """The entries of a section, up to its closing brace, and the position after that."""
    entries: list[str] = []
    parts: list[str] = []
    while token := _TOKEN.match(text, position):
        part, position = token[0], token.end()
        if part == "}" and not "".join(parts).strip():
            return entries, position
        if part in ("{", "}"):
            break
        parts.append(" " if part.startswith(("//", "/*")) else part)
        if part == ";":
            entries.append("".join(parts).strip())
            parts = []
    raise _malformed(text, position, "a section contains entries that end with ; and ends with };")


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _malformed(text: str, position: int, problem: str) -> JaasError:
    return JaasError(f"line {text.count(chr(10), 0, position) + 1}: {problem}")
