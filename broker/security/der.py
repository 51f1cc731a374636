"""Reads DER, as far as certificates and key stores need it: tag, length, value."""

from typing import Final, NamedTuple

OID: Final = 0x06
SEQUENCE: Final = 0x30

_LONG_LENGTH: Final = 0x80


class DerError(ValueError):
    """The bytes are not DER, or end too early."""


class Element(NamedTuple):
    """One element: its tag, its contents, and all of its bytes."""

    tag: int
    content: bytes
    encoded: bytes


def read_all(data: bytes) -> list[Element]:
    """The elements that `data` consists of, for example the content of a SEQUENCE."""
    elements = []
    while data:
        element = read_first(data)
        elements.append(element)
        data = data[len(element.encoded) :]
    return elements


def read_first(data: bytes) -> Element:
    """The element that `data` begins with; DerError if it is not complete."""
    try:
        length, start = data[1], 2
        if length & _LONG_LENGTH:
            start += length & ~_LONG_LENGTH
            length = int.from_bytes(data[2:start])
    except IndexError:
        raise DerError("truncated DER") from None
    end = start + length
    if end > len(data):
        raise DerError("truncated DER")
    return Element(data[0], data[start:end], data[:end])


def oid_text(content: bytes) -> str:
    """The dotted form of an object identifier's content."""
    numbers = [0]
    for byte in content:
        numbers[-1] = numbers[-1] << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(0)
    if len(numbers) < 2:
        raise DerError("empty object identifier")
    # The first number holds two: 40 * the first arc (0, 1 or 2) + the second.
    top = min(numbers[0] // 40, 2)
    return ".".join(str(number) for number in (top, numbers[0] - 40 * top, *numbers[1:-1]))
