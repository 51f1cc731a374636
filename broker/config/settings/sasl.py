"""Broker settings of SASL."""

from broker.config.definitions import (
    LOW,
    PER_BROKER,
    Settings,
    class_name,
    double,
    integer,
    long,
    password,
    short,
    string,
    strings,
)
from broker.config.units import HOUR_MS, KIB, MINUTE_MS
from broker.config.values import Password


class SaslSettings(Settings):
    """Login by SASL: mechanisms, Kerberos, OAuth."""

    sasl_enabled_mechanisms: tuple[str, ...] = strings(
        "sasl.enabled.mechanisms", default=("GSSAPI",), mode=PER_BROKER
    )
    """The mechanisms clients may log in by."""
    sasl_mechanism_inter_broker_protocol: str = string(
        "sasl.mechanism.inter.broker.protocol", default="GSSAPI", mode=PER_BROKER
    )
    """The mechanism brokers log in by among themselves."""
    sasl_jaas_config: Password | None = password("sasl.jaas.config", default=None, mode=PER_BROKER)
    """The login module and its options, in the form of a JAAS file."""
    sasl_server_max_receive_size: int = integer("sasl.server.max.receive.size", default=512 * KIB)
    """The largest message of a client that is logging in."""
    sasl_server_callback_handler_class: str | None = class_name(
        "sasl.server.callback.handler.class", default=None
    )
    """A class that checks the logins of a mechanism."""
    sasl_client_callback_handler_class: str | None = class_name(
        "sasl.client.callback.handler.class", default=None
    )
    """A class that answers for the broker when it logs in elsewhere."""
    sasl_login_class: str | None = class_name("sasl.login.class", default=None)
    """A class that obtains the broker's own credentials."""
    sasl_login_callback_handler_class: str | None = class_name(
        "sasl.login.callback.handler.class", default=None
    )
    """A class that answers for the login module."""
    sasl_login_connect_timeout_ms: int | None = integer(
        "sasl.login.connect.timeout.ms", default=None, importance=LOW
    )
    """How long a connection to the OAuth provider may take to open."""
    sasl_login_read_timeout_ms: int | None = integer(
        "sasl.login.read.timeout.ms", default=None, importance=LOW
    )
    """How long an answer of the OAuth provider may take."""
    sasl_login_refresh_window_factor: float = double(
        "sasl.login.refresh.window.factor", default=0.8, mode=PER_BROKER
    )
    """The part of a credential's life after which it is renewed."""
    sasl_login_refresh_window_jitter: float = double(
        "sasl.login.refresh.window.jitter", default=0.05, mode=PER_BROKER
    )
    """The most by which that time is varied."""
    sasl_login_refresh_min_period_seconds: int = short(
        "sasl.login.refresh.min.period.seconds", default=60, mode=PER_BROKER
    )
    """How long a credential is used at least before it is renewed."""
    sasl_login_refresh_buffer_seconds: int = short(
        "sasl.login.refresh.buffer.seconds", default=300, mode=PER_BROKER
    )
    """How long before its end a credential is renewed at the latest."""
    sasl_login_retry_backoff_ms: int = long(
        "sasl.login.retry.backoff.ms", default=100, importance=LOW
    )
    """The first pause after a failed attempt at the OAuth provider."""
    sasl_login_retry_backoff_max_ms: int = long(
        "sasl.login.retry.backoff.max.ms", default=10_000, importance=LOW
    )
    """The longest pause after failed attempts at the OAuth provider."""
    sasl_kerberos_service_name: str | None = string(
        "sasl.kerberos.service.name", default=None, mode=PER_BROKER
    )
    """The Kerberos name the brokers run under."""
    sasl_kerberos_kinit_cmd: str = string(
        "sasl.kerberos.kinit.cmd", default="/usr/bin/kinit", mode=PER_BROKER
    )
    """The path of kinit."""
    sasl_kerberos_ticket_renew_window_factor: float = double(
        "sasl.kerberos.ticket.renew.window.factor", default=0.8, mode=PER_BROKER
    )
    """The part of a ticket's life after which it is renewed."""
    sasl_kerberos_ticket_renew_jitter: float = double(
        "sasl.kerberos.ticket.renew.jitter", default=0.05, mode=PER_BROKER
    )
    """The most by which that time is varied."""
    sasl_kerberos_min_time_before_relogin: int = long(
        "sasl.kerberos.min.time.before.relogin", default=MINUTE_MS, mode=PER_BROKER
    )
    """The pause between attempts to renew a ticket."""
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = strings(
        "sasl.kerberos.principal.to.local.rules", default=("DEFAULT",), mode=PER_BROKER
    )
    """Rules that make user names out of Kerberos principals."""
    sasl_oauthbearer_token_endpoint_url: str | None = string(
        "sasl.oauthbearer.token.endpoint.url", default=None
    )
    """Where OAuth tokens are obtained."""
    sasl_oauthbearer_jwks_endpoint_url: str | None = string(
        "sasl.oauthbearer.jwks.endpoint.url", default=None
    )
    """Where the keys that sign OAuth tokens are found."""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", default=HOUR_MS, importance=LOW
    )
    """How often those keys are read anew."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", default=100, importance=LOW
    )
    """The first pause after those keys could not be read."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", default=10_000, importance=LOW
    )
    """The longest pause after those keys could not be read."""
    sasl_oauthbearer_clock_skew_seconds: int = integer(
        "sasl.oauthbearer.clock.skew.seconds", default=30, importance=LOW
    )
    """By how much the provider's clock may differ."""
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = strings(
        "sasl.oauthbearer.expected.audience", default=None, importance=LOW
    )
    """The audiences an OAuth token must be meant for."""
    sasl_oauthbearer_expected_issuer: str | None = string(
        "sasl.oauthbearer.expected.issuer", default=None, importance=LOW
    )
    """The issuer an OAuth token must come from."""
    sasl_oauthbearer_scope_claim_name: str = string(
        "sasl.oauthbearer.scope.claim.name", default="scope", importance=LOW
    )
    """The claim of an OAuth token that holds its scope."""
    sasl_oauthbearer_sub_claim_name: str = string(
        "sasl.oauthbearer.sub.claim.name", default="sub", importance=LOW
    )
    """The claim of an OAuth token that holds the user."""
