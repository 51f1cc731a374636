"""Bytes of keys and values as text: safe for people, exact for Kafka's own form."""

import base64
import re
from typing import Final

_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_NEVER_UTF_8: Final = b"\xff"

UTF_8: Final = "utf-8"
BASE64: Final = "base64"
JSON: Final = "json"


def is_utf_8(data: bytes) -> bool:
    """Whether `data` can be passed on as text just as it is."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def java_utf_8(data: bytes) -> bytes:
    """`data` as Java reads and prints it: what is no UTF-8 becomes U+FFFD.

    Java and Python agree on how many of them there are, except that Java takes an encoded
    surrogate for one mistake and Python for two or three.
    """
    return _SURROGATES.sub(_NEVER_UTF_8, data).decode(errors="replace").encode()


def safe_text(data: bytes) -> tuple[str, str]:
    """(text, encoding): the text itself where all of it can be printed, else in base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), BASE64
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text, UTF_8
    return base64.b64encode(data).decode("ascii"), BASE64
