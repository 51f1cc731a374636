"""Keys and values as text."""

import base64
import re
from typing import Final

_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_NEVER_UTF_8: Final = b"\xff"

UTF_8: Final = "utf-8"
BASE64: Final = "base64"
JSON: Final = "json"


def is_utf_8(data: bytes) -> bool:
    """Whether `data` is valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def java_utf_8(data: bytes) -> bytes:
    """`data` as Java decodes and prints it: invalid UTF-8 becomes U+FFFD.

    Java and Python insert the same number of replacement characters, except for an encoded
    surrogate: one in Java, two or three in Python.
    """
    return _SURROGATES.sub(_NEVER_UTF_8, data).decode(errors="replace").encode()


def safe_text(data: bytes) -> tuple[str, str]:
    """(text, encoding): UTF-8 text if it is printable, else base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), BASE64
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text, UTF_8
    return base64.b64encode(data).decode("ascii"), BASE64
