"""Java's client.properties: parsed like Java does, refused where kctl lacks a setting."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.cli.client_properties import parse_properties
from tests.support.kctl import Kctl


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1\nb = 2\nc:3\nd 4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# a=1\n! b=2\n\n  c = 3  ", {"c": "3  "}),
        ("servers=one,\\\n   two", {"servers": "one,two"}),
        ("path=C:\\\\dir\\\nmore=x", {"path": "C:\\dirmore=x"}),
        ("key\\ with\\=both=\\u00e9\\t!", {"key with=both": "é\t!"}),
        ("empty=\nalone", {"empty": "", "alone": ""}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


@given(
    st.dictionaries(
        st.from_regex(r"[a-z.]+", fullmatch=True), st.from_regex(r"[\w,:=/.-]*", fullmatch=True)
    )
)
def test_plain_pairs_come_back_as_they_were_written(pairs: dict[str, str]) -> None:
    text = "".join(f"{key}={value}\n" for key, value in pairs.items())
    assert parse_properties(text) == pairs


def test_refusal_reaches_the_user_before_anything_is_sent(kctl: Kctl, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_SSL\nsasl.jaas.config=secret\n")
    result = kctl("brokers", "list", "-b", "nowhere:1", "--command-config", str(path))
    assert result.exit_code == 2
    assert "sasl.mechanism is missing" in result.stderr
    assert "secret" not in result.stderr


def test_missing_file_is_named(kctl: Kctl) -> None:
    result = kctl("brokers", "list", "-b", "nowhere:1", "--command-config", "/no/such/file")
    assert result.exit_code == 1
    assert "/no/such/file" in result.stderr
