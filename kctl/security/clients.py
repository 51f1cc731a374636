"""The settings as each of the two clients takes them: our own, and librdkafka."""

from collections.abc import Iterable, Mapping

from broker.net.authentication import PLAINTEXT, Sasl, Security
from broker.net.client import Client
from broker.security.plain import plain_client
from broker.security.sasl import Conversation
from broker.security.scram import ScramMechanism, scram_client
from broker.security.tls import TlsError, client_context, pem_blocks
from kctl.errors import CliError, ExitStatus
from kctl.security.settings import Credentials, SecuritySettings, read_security

CONNECT_TIMEOUT_S = 10.0


def make_client(
    servers: str | Iterable[str],
    properties: Mapping[str, str],
    *,
    client_id: str,
    request_timeout_s: float = 30.0,
) -> Client:
    """A client of the cluster with the security of these client.properties.

    It connects when it is first asked something. The properties are plain texts, so a Spark task
    can be sent them; references must have been resolved, as `Session.client_properties` does.
    """
    return Client(
        servers,
        client_id=client_id,
        request_timeout_s=request_timeout_s,
        connect_timeout_s=CONNECT_TIMEOUT_S,
        security=client_security(read_security(properties)),
    )


def client_security(settings: SecuritySettings) -> Security:
    """For our client; CliError if certificates or keys cannot be used."""
    if settings.tls is None and settings.credentials is None:
        return PLAINTEXT
    try:
        tls = None if settings.tls is None else client_context(settings.tls)
    except TlsError as error:
        raise CliError(
            str(error),
            "see ssl.truststore.*, ssl.keystore.* and ssl.key.password",
            ExitStatus.USAGE,
        ) from error
    sasl = None if settings.credentials is None else _sasl(settings.credentials)
    return Security(tls, sasl)


def _sasl(credentials: Credentials) -> Sasl:
    def begin() -> Conversation:
        if credentials.mechanism == "PLAIN":
            return plain_client(credentials.username, credentials.password)
        mechanism = ScramMechanism(credentials.mechanism)
        return scram_client(mechanism, credentials.username, credentials.password)

    return Sasl(credentials.mechanism, begin)


def librdkafka_properties(settings: SecuritySettings) -> dict[str, object]:
    """For librdkafka, under its own names; empty for PLAINTEXT, which is its default."""
    found: dict[str, object] = {}
    if settings.tls is None and settings.credentials is None:
        return found
    found["security.protocol"] = settings.protocol.lower()
    if tls := settings.tls:
        found["ssl.endpoint.identification.algorithm"] = "https" if tls.check_hostname else "none"
        if tls.trusted is not None:
            found["ssl.ca.pem"] = tls.trusted
        if tls.certificates:
            certificates, keys = pem_blocks(tls.certificates)
            found |= {"ssl.certificate.pem": certificates, "ssl.key.pem": keys}
        if tls.key_password:
            found["ssl.key.password"] = tls.key_password
    if credentials := settings.credentials:
        found["sasl.mechanisms"] = credentials.mechanism
        found["sasl.username"] = credentials.username
        found["sasl.password"] = credentials.password
    return found
