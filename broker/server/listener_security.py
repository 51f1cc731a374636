"""Builds the security of the listeners from the settings, and keeps it current.

Certificates are read again when their file changes, and when a dynamic setting changes. Connections
that are open keep theirs. A change that cannot be used is reported, and the old certificates stay.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ssl import SSLContext
from typing import Final

from broker.clock import Clock
from broker.config import BrokerConfig, ConfigError
from broker.net.authentication import PLAINTEXT, Sasl, Security
from broker.net.jwks import JwksKeys, JwksSettings
from broker.net.listener_security import ListenerSecurity
from broker.security.certificate_changes import check_unchanged_identity
from broker.security.distinguished_name import subject_of
from broker.security.principal import ANONYMOUS, KafkaPrincipal
from broker.security.principal_mapping import SslPrincipalMapper
from broker.security.sasl_mechanisms import sasl_client, sasl_server_settings
from broker.security.sasl_server_authenticator import SaslServerAuthenticator
from broker.security.scram_credentials import ScramCredentialCache
from broker.security.ssl_settings import server_tls_settings, store_files, tls_identity
from broker.security.tls import TlsError, client_context
from broker.security.tls_server import ServerTlsSettings, restrict, server_context
from broker.tasks import TaskSet

logger = logging.getLogger(__name__)

_CHECK_INTERVAL_S: Final = 2.0
"""How often the files of certificates are checked for changes."""


class ListenerSecurities:
    """The security of all listeners of a broker, by name."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self.scram = ScramCredentialCache()
        self.clock = clock
        self._jwks: dict[JwksSettings, JwksKeys] = {}
        """The keys of OAuth providers, by their settings."""
        self._tasks = TaskSet("security of listeners")
        self._config = config
        self._executor: ThreadPoolExecutor | None = None
        self._tls: dict[str, ServerTlsSettings] = {}
        """What the contexts of TLS listeners were made of."""
        self._stamps: dict[str, object] = {}
        """Size and time of the files that they were made of."""
        self._connecting: dict[str, Security] = {}
        """How this broker connects to others, by listener; rebuilt after a change."""
        self._listeners = {
            listener.name: self._build(config, listener.name) for listener in config.listeners
        }
        if config.zookeeper_connect:  # there may be other brokers
            for name in {config.inter_broker_listener, config.control_plane_listener}:
                self.connecting(name)

    def oauth_keys(self, config: BrokerConfig) -> JwksKeys:
        """See `sasl_mechanisms.Credentials`."""
        settings = _jwks_settings(config)
        if settings not in self._jwks:
            keys = self._jwks[settings] = JwksKeys(settings)
            self._tasks.spawn(keys.follow())
        return self._jwks[settings]

    def of(self, listener_name: str) -> ListenerSecurity:
        """The security of a listener."""
        return self._listeners[listener_name]

    def connecting(self, listener_name: str) -> Security:
        """How this broker connects to others; ConfigError if settings for that are missing."""
        if listener_name not in self._connecting:
            self._connecting[listener_name] = client_security(self._config, listener_name)
        return self._connecting[listener_name]

    def follow_changes(self) -> None:
        """Read certificates again when their files change, from now on."""
        if self._tls:
            self._tasks.spawn(self._follow_files())

    async def close(self) -> None:
        """End the thread of handshakes and everything that follows changes."""
        await self._tasks.cancel()
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    # --- building ---------------------------------------------------------------------------------

    def _build(self, config: BrokerConfig, name: str) -> ListenerSecurity:
        """The security of one listener; ConfigError names it if its settings are not usable."""
        protocol = config.security_protocol(name) or "PLAINTEXT"
        security = ListenerSecurity(
            protocol,
            failed_authentication_delay_s=config.connection_failed_authentication_delay_ms / 1000,
        )
        try:
            if protocol in ("SSL", "SASL_SSL"):
                self._stamps[name] = _stamp(config, name)
                self._tls[name] = server_tls_settings(config, name)
                security.tls = server_context(self._tls[name])
                security.executor = self._handshake_executor()
            if protocol == "SSL":
                mapper = SslPrincipalMapper(config.for_listener(name).ssl_principal_mapping_rules)
                security.principal_of = partial(_principal_of, mapper)
            if protocol.startswith("SASL"):
                settings = sasl_server_settings(config, name, self)
                security.new_authenticator = partial(SaslServerAuthenticator, settings)
        except (TlsError, ValueError) as error:
            raise ConfigError(f"listener {name}: {error}") from error
        return security

    def _handshake_executor(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="tls-handshake")
        return self._executor

    # --- changes ----------------------------------------------------------------------------------

    def validate(self, new: BrokerConfig) -> None:
        """ConfigError if a listener cannot change to these settings."""
        for name in self._listeners:
            if (new.security_protocol(name) or "") != self._listeners[name].protocol:
                continue  # refused elsewhere
            try:
                if name in self._tls:
                    self._new_context(new, name)
                if self._listeners[name].new_authenticator is not None:
                    sasl_server_settings(new, name, self)
            except (TlsError, ValueError) as error:
                raise ConfigError(f"listener {name}: {error}") from error

    def reconfigure(self, new: BrokerConfig) -> None:
        """Apply changed settings to new connections."""
        self._config = new
        self._connecting.clear()
        for name, security in self._listeners.items():
            try:
                if name in self._tls:
                    self._reload(name)
                if security.new_authenticator is not None:
                    settings = sasl_server_settings(new, name, self)
                    security.new_authenticator = partial(SaslServerAuthenticator, settings)
            except (TlsError, ValueError) as error:
                logger.error("security of a listener is unchanged listener=%s: %s", name, error)

    async def _follow_files(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_INTERVAL_S)
            for name in self._tls:
                if _stamp(self._config, name) != self._stamps[name]:
                    try:
                        self._reload(name)
                    except (TlsError, ValueError) as error:
                        logger.error("certificates are unchanged listener=%s: %s", name, error)

    def _reload(self, name: str) -> None:
        self._stamps[name] = _stamp(self._config, name)
        settings, context = self._new_context(self._config, name)
        if settings != self._tls[name]:
            self._tls[name] = settings
            self._listeners[name].tls = context
            self._connecting.clear()
            logger.info("reloaded certificates listener=%s", name)

    def _new_context(self, config: BrokerConfig, name: str) -> tuple[ServerTlsSettings, SSLContext]:
        settings = server_tls_settings(config, name)
        context = server_context(settings)
        own = config.for_listener(name)
        check_unchanged_identity(
            self._tls[name].identity.certificates or "",
            settings.identity.certificates or "",
            allow_dn=own.ssl_allow_dn_changes,
            allow_san=own.ssl_allow_san_changes,
        )
        return settings, context


def _principal_of(mapper: SslPrincipalMapper, certificate: bytes | None) -> KafkaPrincipal:
    if certificate is None:
        return ANONYMOUS
    return KafkaPrincipal("User", mapper.user_name(subject_of(certificate)))


def _jwks_settings(config: BrokerConfig) -> JwksSettings:
    """Where the keys of a listener's OAuth provider are; `config` is that of the listener."""
    url = config.sasl_oauthbearer_jwks_endpoint_url
    if not url or url.partition(":")[0] not in ("https", "http", "file"):
        raise ConfigError(
            f"sasl.oauthbearer.jwks.endpoint.url={url}: an https, http or file URL is required"
        )
    trusted = tls_identity(config).trusted
    return JwksSettings(
        url,
        config.sasl_oauthbearer_jwks_endpoint_refresh_ms,
        config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
        config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
        trusted,
    )


def _stamp(config: BrokerConfig, name: str) -> object:
    """Changes when one of the files of a listener's certificates does."""
    found = []
    for path in store_files(config.for_listener(name)):
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append((path, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return found


def client_security(config: BrokerConfig, listener_name: str) -> Security:
    """How this broker connects to others over a listener; ConfigError if settings are missing."""
    protocol = config.security_protocol(listener_name) or "PLAINTEXT"
    if protocol == "PLAINTEXT":
        return PLAINTEXT
    tls = sasl = None
    try:
        if protocol in ("SSL", "SASL_SSL"):
            own = config.for_listener(listener_name)
            tls = client_context(tls_identity(own))
            restrict(tls, own.ssl_enabled_protocols, own.ssl_cipher_suites)
        if protocol.startswith("SASL"):
            sasl = Sasl(*sasl_client(config, listener_name))
    except (TlsError, ValueError) as error:
        raise ConfigError(f"listener {listener_name}: {error}") from error
    return Security(tls, sasl)
