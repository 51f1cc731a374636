"""What a connection must do before its requests are served; one object per listener.

The server builds it from the settings (`broker.server.listener_security`) and changes its fields
when certificates are reloaded. Connections read them when they are accepted, so open ones stay as
they are.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from ssl import SSLContext

from broker.security.principal import ANONYMOUS, KafkaPrincipal
from broker.security.sasl_server_authenticator import SaslServerAuthenticator, Session


def _anonymous(_: bytes | None) -> KafkaPrincipal:
    return ANONYMOUS


@dataclass
class ListenerSecurity:
    """The security of one listener; the default is PLAINTEXT."""

    protocol: str = "PLAINTEXT"
    tls: SSLContext | None = None
    """The context of new connections; None without TLS."""
    executor: Executor | None = None
    """Computes TLS handshakes. Invariant: set if `tls` is."""
    principal_of: Callable[[bytes | None], KafkaPrincipal] = field(default=_anonymous)
    """The principal of a client certificate in DER, or of a client without one. ValueError if the
    client must not be served."""
    new_authenticator: Callable[[Session | None], SaslServerAuthenticator] | None = None
    """Begins the authentication of a connection, the first or another; None without SASL."""
    failed_authentication_delay_s: float = 0.1
    """`connection.failed.authentication.delay.ms`: slows down guessing of passwords."""
