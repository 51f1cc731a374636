"""Messages to bytes and back: `encode`, `decode`, and how both fail.

The work is done by functions that `compiler` generates once per message and version. They are fast,
and their exceptions say little. After a failure the same function runs again, compiled with
`traced=True`: it records field and position before every step, for the error message.

Large messages are decoded and encoded in slices, by generators that yield every few hundred
elements; so are the error messages about them.
"""

import struct
from collections.abc import Callable, Generator
from functools import cache
from typing import Any, TypeAlias, TypeVar

from broker.protocol.compiler import Trace
from broker.protocol.decoding import compile_decoder
from broker.protocol.encoding import compile_encoder
from broker.protocol.errors import DecodeError, EncodeError
from broker.protocol.primitives import Buffer, Part
from broker.protocol.schema import Message

MessageT = TypeVar("MessageT", bound=Message)
T = TypeVar("T")

Slices: TypeAlias = Generator[None, None, T]
"""Work in slices: yields after each, and returns the result."""

_decoders: dict[tuple[type[Message], int], Callable[..., Any]] = {}
_encoders: dict[tuple[type[Message], int], Callable[..., Any]] = {}

# Exceptions of compiled code for invalid bytes or values.
_BAD_BYTES = (struct.error, IndexError, ValueError)
_BAD_VALUE = (struct.error, TypeError, ValueError, AttributeError, OverflowError)


def decode(cls: type[MessageT], buffer: Buffer, version: int) -> MessageT:
    """The message in `buffer`; DecodeError if the bytes are not that message, or are too many.

    Records are views of `buffer`, which must live as long; all else is copied.
    """
    decoder = _decoders.get((cls, version)) or _compile_decoder(cls, version)
    try:
        message, end = decoder(buffer, 0)
    except _BAD_BYTES as error:
        raise _explain_decode(cls, buffer, 0, version) from error
    if end != len(buffer):
        raise DecodeError(f"{cls.__name__} v{version}: ends at byte {end} of {len(buffer)}")
    return message  # type: ignore[no-any-return]


def decode_from(
    cls: type[MessageT], buffer: Buffer, position: int, version: int
) -> tuple[MessageT, int]:
    """The message that starts at `position`, and the position after it."""
    decoder = _decoders.get((cls, version)) or _compile_decoder(cls, version)
    try:
        return decoder(buffer, position)  # type: ignore[no-any-return]
    except _BAD_BYTES as error:
        raise _explain_decode(cls, buffer, position, version) from error


def decode_in_slices(
    cls: type[MessageT], buffer: Buffer, position: int, version: int
) -> Slices[tuple[MessageT, int]]:
    """The same as `decode_from`, in slices; DecodeError also above MAX_ELEMENTS elements."""
    _check_version(cls, version, DecodeError)
    try:
        return (yield from _sliced_decoder(cls, version)(buffer, position))  # type: ignore[no-any-return]
    except _BAD_BYTES as error:
        raise (yield from _explain_decode_in_slices(cls, buffer, position, version)) from error


def encode(message: Message, version: int) -> bytes:
    """The bytes of `message`; EncodeError names the field that this version cannot carry."""
    parts = encode_into(message, version, bytearray())
    return b"".join(part if isinstance(part, Buffer) else part.read() for part in parts)


def encode_into(message: Message, version: int, out: bytearray) -> list[Part]:
    """Append `message` to `out` (usually a size and a header); returns all parts, `out` first."""
    cls = type(message)
    encoder = _encoders.get((cls, version)) or _compile_encoder(cls, version)
    parts: list[Part] = []
    try:
        last = encoder(message, out, parts)
    except _BAD_VALUE as error:
        raise _explain_encode(message, version) from error
    if last:
        parts.append(last)
    return parts


def encode_in_slices(message: Message, version: int, out: bytearray) -> Slices[list[Part]]:
    """The same as `encode_into`, in slices."""
    cls = type(message)
    _check_version(cls, version, EncodeError)
    parts: list[Part] = []
    try:
        last = yield from _sliced_encoder(cls, version)(message, out, parts)
    except _BAD_VALUE as error:
        raise _explain_encode(message, version) from error
    if last:
        parts.append(last)
    return parts


def _compile_decoder(cls: type[Message], version: int) -> Callable[..., Any]:
    _check_version(cls, version, DecodeError)
    return _decoders.setdefault((cls, version), compile_decoder(cls, version))


def _compile_encoder(cls: type[Message], version: int) -> Callable[..., Any]:
    _check_version(cls, version, EncodeError)
    return _encoders.setdefault((cls, version), compile_encoder(cls, version))


def _check_version(
    cls: type[Message], version: int, error: type[DecodeError] | type[EncodeError]
) -> None:
    lowest, highest = cls.versions
    if not lowest <= version <= highest:
        raise error(f"{cls.__name__} has versions {lowest} to {highest}, not {version}")


# The same client tends to send the same invalid bytes again, so traced functions are cached too.
@cache
def _traced_decoder(cls: type[Message], version: int) -> Callable[..., Any]:
    return compile_decoder(cls, version, traced=True)


@cache
def _traced_encoder(cls: type[Message], version: int) -> Callable[..., Any]:
    return compile_encoder(cls, version, traced=True)


@cache
def _sliced_decoder(cls: type[Message], version: int) -> Callable[..., Any]:
    return compile_decoder(cls, version, sliced=True)


@cache
def _sliced_encoder(cls: type[Message], version: int) -> Callable[..., Any]:
    return compile_encoder(cls, version, sliced=True)


@cache
def _traced_sliced_decoder(cls: type[Message], version: int) -> Callable[..., Any]:
    return compile_decoder(cls, version, traced=True, sliced=True)


def _explain_decode(cls: type[Message], buffer: Buffer, position: int, version: int) -> DecodeError:
    trace = Trace()
    reason: Exception | None = None
    try:
        _traced_decoder(cls, version)(buffer, position, trace)
    except _BAD_BYTES as error:
        reason = error
    return _decode_error(cls, buffer, version, trace, reason)


def _explain_decode_in_slices(
    cls: type[Message], buffer: Buffer, position: int, version: int
) -> Slices[DecodeError]:
    trace = Trace()
    reason: Exception | None = None
    try:
        yield from _traced_sliced_decoder(cls, version)(buffer, position, trace)
    except _BAD_BYTES as error:
        reason = error
    return _decode_error(cls, buffer, version, trace, reason)


def _decode_error(
    cls: type[Message], buffer: Buffer, version: int, trace: Trace, reason: Exception | None
) -> DecodeError:
    text: object = reason
    if isinstance(reason, struct.error | IndexError):
        text = f"the bytes end here, at {len(buffer)}"
    return DecodeError(f"{cls.__name__} v{version}: {trace.field} at byte {trace.position}: {text}")


def _explain_encode(message: Message, version: int) -> EncodeError:
    trace = Trace()
    reason: Any = None
    try:
        _traced_encoder(type(message), version)(message, bytearray(), [], trace)
    except _BAD_VALUE as error:
        reason = error
    return EncodeError(f"{type(message).__name__} v{version}: {trace.field}: {reason}")
