"""The SASL mechanisms of a listener, built from its settings; and the client's side of them.

JAAS options are taken from `listener.name.<listener>.<mechanism>.sasl.jaas.config` (or from a JAAS
file, see `broker.server.kafka_opts`):

    PLAIN         user_<name>="password": the users that can log in
    SCRAM-…       nothing for clients: their credentials are in the metadata store
    OAUTHBEARER   unsecuredValidator…: how tokens are checked without a validator class
    PLAIN, SCRAM  username and password: how this broker logs in to others
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from broker.clock import Clock
from broker.config import BrokerConfig, ConfigError
from broker.security.jaas import JaasConfig, JaasError, parse_jaas
from broker.security.oauthbearer import (
    KeyLookup,
    SecuredValidator,
    TokenValidator,
    UnsecuredValidator,
    oauthbearer_server,
)
from broker.security.plain import plain_client, plain_server
from broker.security.sasl import Exchange, ServerExchange
from broker.security.sasl_server_authenticator import Mechanism, SaslServerSettings
from broker.security.scram import ScramMechanism, scram_client, scram_server
from broker.security.scram_credentials import ScramCredentialCache

logger = logging.getLogger(__name__)

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
MODULES: Final = {
    PLAIN: "PlainLoginModule",
    OAUTHBEARER: "OAuthBearerLoginModule",
    **dict.fromkeys((mechanism.value for mechanism in ScramMechanism), "ScramLoginModule"),
}
"""The login module of each mechanism."""
_USER_OPTION: Final = "user_"
_NO_CLASSES: Final = "this broker loads no classes; remove the setting"
_SECURED_HANDLERS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
"""The class that verifies signatures, and its name before Kafka 3.4."""


class Credentials(Protocol):
    """What the mechanisms check passwords and tokens against."""

    @property
    def scram(self) -> ScramCredentialCache:
        """The credentials of users and delegation tokens."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock by which tokens expire."""
        ...

    def oauth_keys(self, config: BrokerConfig) -> KeyLookup:
        """The keys of the OAuth provider that these settings of a listener name."""
        ...


def sasl_server_settings(
    config: BrokerConfig, listener_name: str, credentials: Credentials
) -> SaslServerSettings:
    """The SASL settings of a listener; ConfigError if its settings are not usable."""
    own = config.for_listener(listener_name)
    mechanisms = {
        name: Mechanism(
            _server(own, listener_name, name, credentials),
            own.for_mechanism(name).connections_max_reauth_ms,
        )
        for name in own.sasl_enabled_mechanisms
    }
    return SaslServerSettings(mechanisms, credentials.clock, config.sasl_server_max_receive_size)


def _server(
    own: BrokerConfig,
    listener_name: str,
    mechanism: str,
    credentials: Credentials,
) -> Callable[[], ServerExchange]:
    handler = own.for_mechanism(mechanism).sasl_server_callback_handler_class
    if mechanism == OAUTHBEARER:
        validator = _token_validator(own, listener_name, handler, credentials)
        return partial(oauthbearer_server, validator)
    if handler:
        raise ConfigError(f"sasl.server.callback.handler.class={handler}: {_NO_CLASSES}")
    if mechanism == PLAIN:
        return partial(plain_server, _plain_users(_required_jaas(own, listener_name, mechanism)))
    scram = ScramMechanism(mechanism)
    return partial(scram_server, scram, credentials.scram.lookup(scram))


def _token_validator(
    own: BrokerConfig, listener_name: str, handler: str | None, credentials: Credentials
) -> TokenValidator:
    if handler in _SECURED_HANDLERS:
        return SecuredValidator(
            credentials.oauth_keys(own),
            own.sasl_oauthbearer_expected_audience,
            own.sasl_oauthbearer_expected_issuer,
            own.sasl_oauthbearer_clock_skew_seconds,
            own.sasl_oauthbearer_scope_claim_name,
            own.sasl_oauthbearer_sub_claim_name,
        )
    if handler and not handler.endswith("OAuthBearerUnsecuredValidatorCallbackHandler"):
        raise ConfigError(f"sasl.server.callback.handler.class={handler}: {_NO_CLASSES}")
    options = _required_jaas(own, listener_name, OAUTHBEARER).options
    logger.warning(
        "listener %s accepts OAUTHBEARER tokens without signature: anyone can make one; set "
        "sasl.server.callback.handler.class=%s",
        listener_name,
        _SECURED_HANDLERS[0],
    )
    return UnsecuredValidator(
        credentials.clock,
        options.get("unsecuredValidatorPrincipalClaimName", "sub"),
        options.get("unsecuredValidatorScopeClaimName", "scope"),
        options.get("unsecuredValidatorRequiredScope", ""),
        _whole_number(options, "unsecuredValidatorAllowableClockSkewMs"),
    )


def _whole_number(options: Mapping[str, str], name: str) -> int:
    text = options.get(name, "0")
    if not text.isdigit():
        raise ConfigError(f"{name}={text} is not a number")
    return int(text)


def _plain_users(jaas: JaasConfig) -> Mapping[str, str]:
    return {
        name.removeprefix(_USER_OPTION): password
        for name, password in jaas.options.items()
        if name.startswith(_USER_OPTION)
    }


def sasl_client(config: BrokerConfig, listener_name: str) -> tuple[str, Callable[[], Exchange]]:
    """How this broker logs in to others: the mechanism, and the function that starts its exchange.

    ConfigError if the settings contain no user name and password.
    """
    own = config.for_listener(listener_name)
    mechanism = own.sasl_mechanism_inter_broker_protocol
    if mechanism not in (PLAIN, *ScramMechanism):
        known = ", ".join((PLAIN, *ScramMechanism))
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol={mechanism}: brokers of this kind log in to "
            f"each other with {known}"
        )
    options = _required_jaas(own, listener_name, mechanism).options
    username, password = options.get("username"), options.get("password")
    if username is None or password is None:
        key = jaas_key(listener_name, mechanism)
        raise ConfigError(f"{key}: connections to other brokers need username and password")
    if mechanism == PLAIN:
        return mechanism, partial(plain_client, username, password)
    return mechanism, partial(scram_client, ScramMechanism(mechanism), username, password)


def jaas_key(listener_name: str, mechanism: str) -> str:
    """The key of the login module of a listener and mechanism."""
    return f"listener.name.{listener_name.lower()}.{mechanism.lower()}.sasl.jaas.config"


def jaas_config(own: BrokerConfig, listener_name: str, mechanism: str) -> JaasConfig | None:
    """The login module of a mechanism; None if it is not set, ConfigError if it is malformed."""
    text = own.for_mechanism(mechanism).sasl_jaas_config
    if text is None:
        return None
    key = jaas_key(listener_name, mechanism)
    try:
        found = parse_jaas(text)
    except JaasError as error:
        raise ConfigError(f"{key}: {error}") from error
    if found.module != MODULES[mechanism]:
        raise ConfigError(f"{key}: {mechanism} needs {MODULES[mechanism]}, not {found.module}")
    return found


def _required_jaas(own: BrokerConfig, listener_name: str, mechanism: str) -> JaasConfig:
    found = jaas_config(own, listener_name, mechanism)
    if found is None:
        module = f"org.apache.kafka.common.security.….{MODULES[mechanism]}"
        key = jaas_key(listener_name, mechanism)
        raise ConfigError(
            f"listener {listener_name} has {mechanism}: set {key}={module} required …; "
            "or name a JAAS file in KAFKA_OPTS"
        )
    return found
