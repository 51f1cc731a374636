"""Bytes as text: as shown by kctl, and as printed by Java."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.views.text import is_utf_8, java_utf_8, safe_text

REPLACEMENT = "\ufffd"


@pytest.mark.parametrize(
    ("data", "replacements"),
    [
        (b"\x80", 1),
        (b"\xc0\x80", 2),  # overlong: each byte is wrong
        (b"\xe2\x82", 1),  # cut short: one mistake
        (b"\xf0\x9f\x98", 1),
        (b"\xf5\x80\x80\x80", 4),  # beyond Unicode
        (b"\xed\xa0\x80", 1),  # a surrogate: one mistake to Java, three to Python
        (b"\xed\xbf\xbf\xed\xa0\x80", 2),
        (b"\xed\xa0", 1),
    ],
)
def test_java_prints_the_same_number_of_replacements(data: bytes, replacements: int) -> None:
    assert java_utf_8(b"<" + data + b">").decode() == f"<{REPLACEMENT * replacements}>"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_valid_utf_8_is_printed_as_it_is(text: str) -> None:
    assert is_utf_8(text.encode())
    assert java_utf_8(text.encode()) == text.encode()


@given(st.binary())
def test_shown_text_can_be_read_back(data: bytes) -> None:
    text, encoding = safe_text(data)

    assert data == (text.encode() if encoding == "utf-8" else base64.b64decode(text))


@pytest.mark.parametrize("data", [b"\x00", b"\x1b[2J", b"a\x7f", b"\xff"])
def test_bytes_that_could_disturb_a_terminal_are_never_shown_as_text(data: bytes) -> None:
    assert safe_text(data)[1] == "base64"


@pytest.mark.parametrize("text", ["", "plain", "grün 🙂", "two\nlines\tand a tab"])
def test_ordinary_text_is_shown_as_text(text: str) -> None:
    assert safe_text(text.encode()) == (text, "utf-8")
