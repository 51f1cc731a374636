"""A principal, as an Envelope carries it."""

from broker.protocol.schema import Message, wire


class DefaultPrincipalData(Message, versions=(0, 0), flexible=0):
    """The principal of a forwarded request."""

    type: str = wire("string")
    name: str = wire("string")
    token_authenticated: bool = wire("bool")
