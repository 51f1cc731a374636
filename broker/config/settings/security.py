"""Broker settings of security."""

from typing import Final

from broker.config.definitions import (
    LOW,
    PER_BROKER,
    Settings,
    boolean,
    class_name,
    integer,
    long,
    no_effect,
    password,
    rejected,
    string,
    strings,
)
from broker.config.units import DAY_MS, HOUR_MS
from broker.config.validators import at_least, one_of
from broker.config.values import Password

_OPENSSL: Final = no_effect("OpenSSL has its own implementation")


class SecuritySettings(Settings):
    """TLS, principals, delegation tokens, encryption of stored passwords."""

    principal_builder_class: str = class_name(
        "principal.builder.class",
        default="org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        mode=PER_BROKER,
        effect=rejected("this broker loads no classes; remove the setting"),
    )
    """The class that builds the principal of a connection."""
    security_providers: str | None = string(
        "security.providers",
        default=None,
        importance=LOW,
        effect=rejected("this broker loads no security providers; remove the setting"),
    )
    """Classes that provide additional security algorithms."""
    connections_max_reauth_ms: int = long(
        "connections.max.reauth.ms",
        default=0,
    )
    """The maximum session lifetime before re-authentication; 0: no limit."""
    ssl_client_auth: str = string(
        "ssl.client.auth",
        default="none",
        valid=one_of("required", "requested", "none"),
        mode=PER_BROKER,
    )
    """Whether client certificates are `required`, `requested` or `none`."""
    ssl_protocol: str = string(
        "ssl.protocol",
        default="TLSv1.3",
        mode=PER_BROKER,
        effect=no_effect("the highest of ssl.enabled.protocols is used"),
    )
    """The TLS protocol of connections."""
    ssl_enabled_protocols: tuple[str, ...] = strings(
        "ssl.enabled.protocols", default=("TLSv1.2", "TLSv1.3"), mode=PER_BROKER
    )
    """The enabled TLS protocols."""
    ssl_cipher_suites: tuple[str, ...] = strings("ssl.cipher.suites", default=(), mode=PER_BROKER)
    """The enabled cipher suites; empty: all secure ones."""
    ssl_provider: str | None = string(
        "ssl.provider",
        default=None,
        mode=PER_BROKER,
        effect=rejected("this broker uses OpenSSL; remove the setting"),
    )
    """The security provider for TLS."""
    ssl_keystore_type: str = string("ssl.keystore.type", default="JKS", mode=PER_BROKER)
    """The format of the key store."""
    ssl_keystore_location: str | None = string(
        "ssl.keystore.location", default=None, mode=PER_BROKER
    )
    """The file with the key and certificate of the broker."""
    ssl_keystore_password: Password | None = password(
        "ssl.keystore.password", default=None, mode=PER_BROKER
    )
    """The password of the key store."""
    ssl_keystore_key: Password | None = password("ssl.keystore.key", default=None, mode=PER_BROKER)
    """The private key of the broker in PEM format."""
    ssl_keystore_certificate_chain: Password | None = password(
        "ssl.keystore.certificate.chain", default=None, mode=PER_BROKER
    )
    """The certificate chain of the broker in PEM format."""
    ssl_key_password: Password | None = password("ssl.key.password", default=None, mode=PER_BROKER)
    """The password of the private key."""
    ssl_truststore_type: str = string("ssl.truststore.type", default="JKS", mode=PER_BROKER)
    """The format of the trust store."""
    ssl_truststore_location: str | None = string(
        "ssl.truststore.location", default=None, mode=PER_BROKER
    )
    """The file with the trusted certificates."""
    ssl_truststore_password: Password | None = password(
        "ssl.truststore.password", default=None, mode=PER_BROKER
    )
    """The password of the trust store."""
    ssl_truststore_certificates: Password | None = password(
        "ssl.truststore.certificates", default=None, mode=PER_BROKER
    )
    """The trusted certificates in PEM format."""
    ssl_keymanager_algorithm: str = string(
        "ssl.keymanager.algorithm", default="SunX509", mode=PER_BROKER, effect=_OPENSSL
    )
    """The algorithm of the key manager factory."""
    ssl_trustmanager_algorithm: str = string(
        "ssl.trustmanager.algorithm", default="PKIX", mode=PER_BROKER, effect=_OPENSSL
    )
    """The algorithm of the trust manager factory."""
    ssl_endpoint_identification_algorithm: str = string(
        "ssl.endpoint.identification.algorithm",
        default="https",
        importance=LOW,
        mode=PER_BROKER,
    )
    """The algorithm for host name verification; empty: no verification."""
    ssl_secure_random_implementation: str | None = string(
        "ssl.secure.random.implementation",
        default=None,
        importance=LOW,
        mode=PER_BROKER,
        effect=_OPENSSL,
    )
    """The random number generator for TLS."""
    ssl_principal_mapping_rules: str = string(
        "ssl.principal.mapping.rules", default="DEFAULT", importance=LOW
    )
    """Rules that map distinguished names of certificates to user names."""
    ssl_engine_factory_class: str | None = class_name(
        "ssl.engine.factory.class",
        default=None,
        importance=LOW,
        mode=PER_BROKER,
        effect=rejected("this broker loads no classes; remove the setting"),
    )
    """The class that creates TLS engines."""
    ssl_allow_dn_changes: bool = boolean("ssl.allow.dn.changes", default=False, importance=LOW)
    """Whether a reloaded certificate may have another distinguished name."""
    ssl_allow_san_changes: bool = boolean("ssl.allow.san.changes", default=False, importance=LOW)
    """Whether a reloaded certificate may lack previous subject alternative names."""
    delegation_token_master_key: Password | None = password(
        "delegation.token.master.key",
        default=None,
    )
    """Deprecated name of `delegation.token.secret.key`."""
    delegation_token_secret_key: Password | None = password(
        "delegation.token.secret.key",
        default=None,
    )
    """The key that signs delegation tokens; the same on all brokers."""
    delegation_token_max_lifetime_ms: int = long(
        "delegation.token.max.lifetime.ms", default=7 * DAY_MS, valid=at_least(1)
    )
    """The maximum lifetime of a delegation token, including renewals."""
    delegation_token_expiry_time_ms: int = long(
        "delegation.token.expiry.time.ms", default=DAY_MS, valid=at_least(1)
    )
    """The lifetime of a delegation token without renewal."""
    delegation_token_expiry_check_interval_ms: int = long(
        "delegation.token.expiry.check.interval.ms",
        default=HOUR_MS,
        valid=at_least(1),
        importance=LOW,
    )
    """How often expired delegation tokens are removed."""
    password_encoder_secret: Password | None = password(
        "password.encoder.secret",
        default=None,
    )
    """The secret that encrypts passwords in dynamic settings."""
    password_encoder_old_secret: Password | None = password(
        "password.encoder.old.secret", default=None
    )
    """The previous secret, while passwords are encrypted again with the new one."""
    password_encoder_keyfactory_algorithm: str | None = string(
        "password.encoder.keyfactory.algorithm", default=None, importance=LOW
    )
    """The key derivation algorithm for the secret."""
    password_encoder_cipher_algorithm: str = string(
        "password.encoder.cipher.algorithm",
        default="AES/CBC/PKCS5Padding",
        importance=LOW,
    )
    """The cipher that encrypts passwords."""
    password_encoder_key_length: int = integer(
        "password.encoder.key.length",
        default=128,
        valid=at_least(8),
        importance=LOW,
    )
    """The key length of the cipher in bits."""
    password_encoder_iterations: int = integer(
        "password.encoder.iterations",
        default=4096,
        valid=at_least(1024),
        importance=LOW,
    )
    """The iterations of the key derivation."""
