"""DecodeError: the peer sent invalid bytes. EncodeError: this program built an invalid message."""


class ProtocolError(Exception):
    """Base of both."""


class DecodeError(ProtocolError):
    """The bytes are not the message they claim to be; names message, field and position."""


class EncodeError(ProtocolError):
    """The message cannot be encoded in this version; the text names message and field."""
