"""Whose fault it is: DecodeError is theirs, EncodeError is ours."""


class ProtocolError(Exception):
    """Bytes and a message do not fit together."""


class DecodeError(ProtocolError):
    """The bytes are not the message they claim to be; names message, field and position."""


class EncodeError(ProtocolError):
    """The message cannot be written in the version asked for; the text names message and field."""
