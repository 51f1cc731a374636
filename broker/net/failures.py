"""Failures of outbound connections, with messages that name the broker and the reason."""

import os
import socket
import ssl
from enum import Enum, auto


class ConnectionFailed(ConnectionError):
    """A connection could not be opened, or was lost; names the broker and the reason."""


class SecurityProblem(Enum):
    """How the security settings of client and broker differ; retrying helps with none of these."""

    NOT_TLS = auto()
    WANTS_TLS = auto()
    UNTRUSTED_CERTIFICATE = auto()
    HOSTNAME_MISMATCH = auto()
    CERTIFICATE_WANTED = auto()
    TLS_REFUSED = auto()
    NO_SASL = auto()
    MECHANISM_NOT_ENABLED = auto()
    BAD_CREDENTIALS = auto()


class SecurityFailed(ConnectionFailed):
    """The TLS handshake or the authentication failed."""

    def __init__(self, message: str, problem: SecurityProblem) -> None:
        super().__init__(message)
        self.problem = problem


_HOSTNAME_CODES = {62, 64}
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""

_NOT_TLS_REASONS = {"WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING", "RECORD_LAYER_FAILURE"}
_CERTIFICATE_REASONS = {"TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_BAD_CERTIFICATE"}


def connecting_failed(node: object, error: OSError, is_tls: bool) -> ConnectionFailed:
    """The failure to connect to `node`."""
    if isinstance(error, ssl.SSLError):
        return tls_failed(node, error)
    if is_tls and isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return _not_tls(node)
    if isinstance(error, socket.gaierror):
        return ConnectionFailed(f"{node}: {error.strerror}")
    return ConnectionFailed(f"{node}: {os.strerror(error.errno) if error.errno else error}")


def tls_failed(node: object, error: ssl.SSLError) -> SecurityFailed:
    """The failure of the TLS handshake with `node`."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(node, error)
    reason = error.reason or ""
    if reason in _NOT_TLS_REASONS or isinstance(error, ssl.SSLEOFError):
        return _not_tls(node)
    if reason in _CERTIFICATE_REASONS or "CERTIFICATE" in reason:
        return SecurityFailed(
            f"{node} requires a client certificate that it trusts ({reason})",
            SecurityProblem.CERTIFICATE_WANTED,
        )
    return SecurityFailed(
        f"{node}: the TLS handshake failed ({reason or error})", SecurityProblem.TLS_REFUSED
    )


def _untrusted(node: object, error: ssl.SSLCertVerificationError) -> SecurityFailed:
    if error.verify_code in _HOSTNAME_CODES:
        problem = SecurityProblem.HOSTNAME_MISMATCH
        return SecurityFailed(f"{node} has a certificate for another name", problem)
    return SecurityFailed(
        f"{node} has a certificate that is not trusted: {error.verify_message}",
        SecurityProblem.UNTRUSTED_CERTIFICATE,
    )


def _not_tls(node: object) -> SecurityFailed:
    return SecurityFailed(
        f"{node} aborted the TLS handshake: it seems to be a plaintext listener",
        SecurityProblem.NOT_TLS,
    )
