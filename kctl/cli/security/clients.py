"""The settings in the forms of our client and of librdkafka."""

from broker.net.authentication import PLAINTEXT, Sasl, Security
from broker.security.plain import plain_client
from broker.security.sasl import Exchange
from broker.security.scram import ScramMechanism, scram_client
from broker.security.tls import TlsError, client_context, pem_blocks
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.security.oauth import OAuthLogin, TokenSource
from kctl.cli.security.settings import Credentials, SecuritySettings


def client_security(settings: SecuritySettings) -> Security:
    """Settings of our client; CliError if certificates or keys cannot be used."""
    if settings.tls is None and settings.credentials is None:
        return PLAINTEXT
    try:
        tls = None if settings.tls is None else client_context(settings.tls)
    except TlsError as error:
        raise CliError(
            str(error),
            "check ssl.truststore.*, ssl.keystore.* and ssl.key.password",
            ExitStatus.USAGE,
        ) from error
    sasl = None if settings.credentials is None else _sasl(settings.credentials)
    return Security(tls, sasl)


def _sasl(credentials: Credentials | OAuthLogin) -> Sasl:
    if isinstance(credentials, OAuthLogin):
        source = TokenSource(credentials)
        source.token()  # a wrong configuration is reported before anything is connected
        return Sasl(credentials.mechanism, source.begin)

    def begin() -> Exchange:
        if credentials.mechanism == "PLAIN":
            return plain_client(credentials.username, credentials.password)
        mechanism = ScramMechanism(credentials.mechanism)
        return scram_client(
            mechanism,
            credentials.username,
            credentials.password,
            is_token=credentials.is_token,
        )

    return Sasl(credentials.mechanism, begin)


def librdkafka_properties(settings: SecuritySettings) -> dict[str, object]:
    """Settings of librdkafka, under its names; empty for PLAINTEXT, its default."""
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
    if settings.credentials:
        found |= _librdkafka_login(settings.credentials)
    return found


def _librdkafka_login(credentials: Credentials | OAuthLogin) -> dict[str, object]:
    if isinstance(credentials, OAuthLogin):
        return {
            "sasl.mechanisms": credentials.mechanism,
            "oauth_cb": TokenSource(credentials).for_librdkafka,
        }
    if credentials.is_token:
        raise CliError(
            "kctl produces and consumes with librdkafka, which does not support delegation tokens",
            "log in with the password of a user",
        )
    return {
        "sasl.mechanisms": credentials.mechanism,
        "sasl.username": credentials.username,
        "sasl.password": credentials.password,
    }
