"""Agree on a SASL mechanism.

Versions:
    v1 the tokens travel in SaslAuthenticate (KIP-152), not bare
"""

from broker.protocol.schema import Request, Response, wire


class SaslHandshakeRequest(Request["SaslHandshakeResponse"], api_key=17, versions=(0, 1)):
    """The mechanism of the client."""

    mechanism: str = wire("string")


class SaslHandshakeResponse(Response, versions=(0, 1)):
    """The mechanisms that are enabled on the broker."""

    error_code: int = wire("int16")
    mechanisms: list[str] = wire("[]string")
