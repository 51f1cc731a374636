"""Broker settings of security."""

from broker.config.definitions import (
    LOW,
    PER_BROKER,
    Settings,
    boolean,
    class_name,
    integer,
    long,
    password,
    string,
    strings,
)
from broker.config.units import DAY_MS, HOUR_MS
from broker.config.validators import at_least, one_of
from broker.config.values import Password


class SecuritySettings(Settings):
    """Who may connect: TLS, principals, delegation tokens, passwords kept in the store."""

    principal_builder_class: str = class_name(
        "principal.builder.class",
        default="org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        mode=PER_BROKER,
    )
    """The class that names the user behind a connection."""
    security_providers: str | None = string("security.providers", default=None, importance=LOW)
    """Classes that bring further security algorithms."""
    connections_max_reauth_ms: int = long("connections.max.reauth.ms", default=0)
    """How long a login is good for before it must be renewed; 0 is for ever."""
    ssl_client_auth: str = string(
        "ssl.client.auth",
        default="none",
        valid=one_of("required", "requested", "none"),
        mode=PER_BROKER,
    )
    """Whether clients must show a certificate: `required`, `requested` or `none`."""
    ssl_protocol: str = string("ssl.protocol", default="TLSv1.3", mode=PER_BROKER)
    """The TLS version connections are made with."""
    ssl_enabled_protocols: tuple[str, ...] = strings(
        "ssl.enabled.protocols", default=("TLSv1.2", "TLSv1.3"), mode=PER_BROKER
    )
    """The TLS versions that are accepted."""
    ssl_cipher_suites: tuple[str, ...] = strings("ssl.cipher.suites", default=(), mode=PER_BROKER)
    """The cipher suites that are accepted; empty is all that are safe."""
    ssl_provider: str | None = string("ssl.provider", default=None, mode=PER_BROKER)
    """The provider of TLS."""
    ssl_keystore_type: str = string("ssl.keystore.type", default="JKS", mode=PER_BROKER)
    """The format of the key store."""
    ssl_keystore_location: str | None = string(
        "ssl.keystore.location", default=None, mode=PER_BROKER
    )
    """The file with the broker's key and certificate."""
    ssl_keystore_password: Password | None = password(
        "ssl.keystore.password", default=None, mode=PER_BROKER
    )
    """The password of the key store."""
    ssl_keystore_key: Password | None = password("ssl.keystore.key", default=None, mode=PER_BROKER)
    """The broker's private key itself, as PEM."""
    ssl_keystore_certificate_chain: Password | None = password(
        "ssl.keystore.certificate.chain", default=None, mode=PER_BROKER
    )
    """The broker's certificates themselves, as PEM."""
    ssl_key_password: Password | None = password("ssl.key.password", default=None, mode=PER_BROKER)
    """The password of the private key."""
    ssl_truststore_type: str = string("ssl.truststore.type", default="JKS", mode=PER_BROKER)
    """The format of the trust store."""
    ssl_truststore_location: str | None = string(
        "ssl.truststore.location", default=None, mode=PER_BROKER
    )
    """The file with the certificates that are trusted."""
    ssl_truststore_password: Password | None = password(
        "ssl.truststore.password", default=None, mode=PER_BROKER
    )
    """The password of the trust store."""
    ssl_truststore_certificates: Password | None = password(
        "ssl.truststore.certificates", default=None, mode=PER_BROKER
    )
    """The trusted certificates themselves, as PEM."""
    ssl_keymanager_algorithm: str = string(
        "ssl.keymanager.algorithm", default="SunX509", mode=PER_BROKER
    )
    """How the key is picked from the key store."""
    ssl_trustmanager_algorithm: str = string(
        "ssl.trustmanager.algorithm", default="PKIX", mode=PER_BROKER
    )
    """How certificates are checked against the trust store."""
    ssl_endpoint_identification_algorithm: str = string(
        "ssl.endpoint.identification.algorithm", default="https", importance=LOW, mode=PER_BROKER
    )
    """How a server's name is compared with its certificate; empty: not at all."""
    ssl_secure_random_implementation: str | None = string(
        "ssl.secure.random.implementation", default=None, importance=LOW, mode=PER_BROKER
    )
    """The source of random numbers for TLS."""
    ssl_principal_mapping_rules: str = string(
        "ssl.principal.mapping.rules", default="DEFAULT", importance=LOW
    )
    """Rules that make user names out of certificates."""
    ssl_engine_factory_class: str | None = class_name(
        "ssl.engine.factory.class", default=None, importance=LOW, mode=PER_BROKER
    )
    """A class that makes the TLS engines."""
    ssl_allow_dn_changes: bool = boolean("ssl.allow.dn.changes", default=False, importance=LOW)
    """Whether a new certificate may bear another distinguished name."""
    ssl_allow_san_changes: bool = boolean("ssl.allow.san.changes", default=False, importance=LOW)
    """Whether a new certificate may lack earlier alternative names."""
    delegation_token_master_key: Password | None = password(
        "delegation.token.master.key", default=None
    )
    """The old name of `delegation.token.secret.key`."""
    delegation_token_secret_key: Password | None = password(
        "delegation.token.secret.key", default=None
    )
    """The key that delegation tokens are signed with, the same on every broker."""
    delegation_token_max_lifetime_ms: int = long(
        "delegation.token.max.lifetime.ms", default=7 * DAY_MS, valid=at_least(1)
    )
    """How long a delegation token can be renewed."""
    delegation_token_expiry_time_ms: int = long(
        "delegation.token.expiry.time.ms", default=DAY_MS, valid=at_least(1)
    )
    """How long a delegation token is good for without being renewed."""
    delegation_token_expiry_check_interval_ms: int = long(
        "delegation.token.expiry.check.interval.ms",
        default=HOUR_MS,
        valid=at_least(1),
        importance=LOW,
    )
    """How often expired delegation tokens are looked for."""
    password_encoder_secret: Password | None = password("password.encoder.secret", default=None)
    """The secret that passwords in the store are encrypted with."""
    password_encoder_old_secret: Password | None = password(
        "password.encoder.old.secret", default=None
    )
    """The secret before the current one, while passwords are encrypted anew."""
    password_encoder_keyfactory_algorithm: str | None = string(
        "password.encoder.keyfactory.algorithm", default=None, importance=LOW
    )
    """How a key is made out of the secret."""
    password_encoder_cipher_algorithm: str = string(
        "password.encoder.cipher.algorithm", default="AES/CBC/PKCS5Padding", importance=LOW
    )
    """The cipher of passwords in the store."""
    password_encoder_key_length: int = integer(
        "password.encoder.key.length", default=128, valid=at_least(8), importance=LOW
    )
    """Bits of that cipher's key."""
    password_encoder_iterations: int = integer(
        "password.encoder.iterations", default=4096, valid=at_least(1024), importance=LOW
    )
    """Rounds of making the key out of the secret."""
