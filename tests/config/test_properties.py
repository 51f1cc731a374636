from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config import ConfigError, read_properties
from broker.java_properties import parse_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t:\t1", {"a": "1"}),
        ("a==1", {"a": "=1"}),
        ("a", {"a": ""}),
        ("  a=1\r\n\r\n  b=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("# a=1\n  ! b=2\nc=3 # not a comment", {"c": "3 # not a comment"}),
        ("# a \\\nb=2", {"b": "2"}),
        ("a=1,\\\n    2,\\\n    3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("\\\na=1", {"a": "1"}),
        (r"a\=b\:c\ d=1", {"a=b:c d": "1"}),
        (r"a=\t\n\r\f\\\q", {"a": "\t\n\r\f\\q"}),
        (r"a=\u00e9\u0041", {"a": "éA"}),
        ("a=é", {"a": "é"}),
        ("a=1\na=2", {"a": "2"}),
        ("=1", {"": "1"}),
        ("", {}),
    ],
)
def test_file_is_parsed_as_in_java(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


def escape(text: str) -> str:
    """A key or value as Java's Properties.store writes it."""
    special = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}
    return "".join(special.get(c) or (f"\\{c}" if c in " =:#!\\" else c) for c in text)


@given(st.dictionaries(st.text(), st.text()))
def test_output_of_java_round_trips(properties: dict[str, str]) -> None:
    text = "".join(f"{escape(key)}={escape(value)}\n" for key, value in properties.items())
    assert parse_properties(text) == properties


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"a=\\u00g0", "Malformed"), (b"a=\xff", "not UTF-8 text"), (None, "No such file")],
)
def test_error_names_the_file(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "server.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"cannot read {path}: .*{problem}"):
        read_properties(path)
