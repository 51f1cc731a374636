"""Broker settings for SASL."""

from typing import Final

from broker.config.definitions import (
    LOW,
    PER_BROKER,
    Settings,
    class_name,
    double,
    integer,
    long,
    no_effect,
    password,
    rejected,
    short,
    string,
    strings,
)
from broker.config.units import HOUR_MS, KIB, MINUTE_MS
from broker.config.values import Password

_NO_KERBEROS: Final = no_effect("this broker has no Kerberos (GSSAPI)")
_NO_LOGIN: Final = no_effect("brokers do not log in to each other with OAUTHBEARER")
_LOADS_NO_CLASSES: Final = rejected("this broker loads no classes; remove the setting")


class SaslSettings(Settings):
    """SASL: mechanisms, Kerberos, OAuth."""

    sasl_enabled_mechanisms: tuple[str, ...] = strings(
        "sasl.enabled.mechanisms", default=("GSSAPI",), mode=PER_BROKER
    )
    """The enabled SASL mechanisms."""
    sasl_mechanism_inter_broker_protocol: str = string(
        "sasl.mechanism.inter.broker.protocol", default="GSSAPI", mode=PER_BROKER
    )
    """The SASL mechanism between brokers."""
    sasl_jaas_config: Password | None = password("sasl.jaas.config", default=None, mode=PER_BROKER)
    """The JAAS login module and its options."""
    sasl_server_max_receive_size: int = integer("sasl.server.max.receive.size", default=512 * KIB)
    """The maximum size of a request before authentication."""
    sasl_server_callback_handler_class: str | None = class_name(
        "sasl.server.callback.handler.class", default=None
    )
    """The class that verifies SASL credentials on the server side."""
    sasl_client_callback_handler_class: str | None = class_name(
        "sasl.client.callback.handler.class", default=None, effect=_LOADS_NO_CLASSES
    )
    """The class that provides SASL credentials for outgoing connections."""
    sasl_login_class: str | None = class_name(
        "sasl.login.class", default=None, effect=_LOADS_NO_CLASSES
    )
    """The class of the login implementation."""
    sasl_login_callback_handler_class: str | None = class_name(
        "sasl.login.callback.handler.class", default=None, effect=_LOADS_NO_CLASSES
    )
    """The callback handler class of the login module."""
    sasl_login_connect_timeout_ms: int | None = integer(
        "sasl.login.connect.timeout.ms", default=None, importance=LOW, effect=_NO_LOGIN
    )
    """The connection timeout of the OAuth provider."""
    sasl_login_read_timeout_ms: int | None = integer(
        "sasl.login.read.timeout.ms", default=None, importance=LOW, effect=_NO_LOGIN
    )
    """The read timeout of the OAuth provider."""
    sasl_login_refresh_window_factor: float = double(
        "sasl.login.refresh.window.factor", default=0.8, mode=PER_BROKER, effect=_NO_LOGIN
    )
    """The fraction of the lifetime after which a credential is refreshed."""
    sasl_login_refresh_window_jitter: float = double(
        "sasl.login.refresh.window.jitter", default=0.05, mode=PER_BROKER, effect=_NO_LOGIN
    )
    """The jitter of the refresh time, as a fraction of the lifetime."""
    sasl_login_refresh_min_period_seconds: int = short(
        "sasl.login.refresh.min.period.seconds", default=60, mode=PER_BROKER, effect=_NO_LOGIN
    )
    """The minimum time before a credential is refreshed."""
    sasl_login_refresh_buffer_seconds: int = short(
        "sasl.login.refresh.buffer.seconds", default=300, mode=PER_BROKER, effect=_NO_LOGIN
    )
    """The time before its expiration at which a credential is refreshed at the latest."""
    sasl_login_retry_backoff_ms: int = long(
        "sasl.login.retry.backoff.ms", default=100, importance=LOW, effect=_NO_LOGIN
    )
    """The initial wait after a failed attempt at the OAuth provider."""
    sasl_login_retry_backoff_max_ms: int = long(
        "sasl.login.retry.backoff.max.ms", default=10_000, importance=LOW, effect=_NO_LOGIN
    )
    """The maximum wait after failed attempts at the OAuth provider."""
    sasl_kerberos_service_name: str | None = string(
        "sasl.kerberos.service.name", default=None, mode=PER_BROKER, effect=_NO_KERBEROS
    )
    """The Kerberos service name of the brokers."""
    sasl_kerberos_kinit_cmd: str = string(
        "sasl.kerberos.kinit.cmd", default="/usr/bin/kinit", mode=PER_BROKER, effect=_NO_KERBEROS
    )
    """The path of the kinit command."""
    sasl_kerberos_ticket_renew_window_factor: float = double(
        "sasl.kerberos.ticket.renew.window.factor",
        default=0.8,
        mode=PER_BROKER,
        effect=_NO_KERBEROS,
    )
    """The fraction of the lifetime after which a ticket is renewed."""
    sasl_kerberos_ticket_renew_jitter: float = double(
        "sasl.kerberos.ticket.renew.jitter", default=0.05, mode=PER_BROKER, effect=_NO_KERBEROS
    )
    """The jitter of the renewal time, as a fraction of the lifetime."""
    sasl_kerberos_min_time_before_relogin: int = long(
        "sasl.kerberos.min.time.before.relogin",
        default=MINUTE_MS,
        mode=PER_BROKER,
        effect=_NO_KERBEROS,
    )
    """The wait between attempts to renew a ticket."""
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = strings(
        "sasl.kerberos.principal.to.local.rules",
        default=("DEFAULT",),
        mode=PER_BROKER,
        effect=_NO_KERBEROS,
    )
    """Rules that map Kerberos principals to user names."""
    sasl_oauthbearer_token_endpoint_url: str | None = string(
        "sasl.oauthbearer.token.endpoint.url", default=None, effect=_NO_LOGIN
    )
    """The URL of the OAuth token endpoint."""
    sasl_oauthbearer_jwks_endpoint_url: str | None = string(
        "sasl.oauthbearer.jwks.endpoint.url", default=None
    )
    """The URL of the JWKS with the keys of the OAuth provider."""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        default=HOUR_MS,
        importance=LOW,
    )
    """The refresh interval of the JWKS."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        default=100,
        importance=LOW,
    )
    """The initial wait after a failed attempt to read the JWKS."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        default=10_000,
        importance=LOW,
    )
    """The maximum wait after failed attempts to read the JWKS."""
    sasl_oauthbearer_clock_skew_seconds: int = integer(
        "sasl.oauthbearer.clock.skew.seconds", default=30, importance=LOW
    )
    """The allowed clock difference to the OAuth provider."""
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = strings(
        "sasl.oauthbearer.expected.audience", default=None, importance=LOW
    )
    """The expected audiences of an OAuth token."""
    sasl_oauthbearer_expected_issuer: str | None = string(
        "sasl.oauthbearer.expected.issuer", default=None, importance=LOW
    )
    """The expected issuer of an OAuth token."""
    sasl_oauthbearer_scope_claim_name: str = string(
        "sasl.oauthbearer.scope.claim.name", default="scope", importance=LOW
    )
    """The claim of an OAuth token with its scope."""
    sasl_oauthbearer_sub_claim_name: str = string(
        "sasl.oauthbearer.sub.claim.name", default="sub", importance=LOW
    )
    """The claim of an OAuth token with the subject."""
