"""Broker settings for ZooKeeper."""

from broker.config.definitions import (
    HIGH,
    LOW,
    Settings,
    boolean,
    integer,
    no_effect,
    password,
    rejected,
    string,
    strings,
)
from broker.config.validators import at_least
from broker.config.values import Password


class ZooKeeperSettings(Settings):
    """The ensemble with the cluster's metadata; without one, the embedded store is used."""

    zookeeper_connect: str | None = string("zookeeper.connect", default=None, importance=HIGH)
    """The ZooKeeper ensemble, `host:port,host:port/chroot`; not set: the embedded store."""
    zookeeper_session_timeout_ms: int = integer(
        "zookeeper.session.timeout.ms", default=18_000, importance=HIGH
    )
    """The session timeout; a broker without contact for that long is considered dead."""
    zookeeper_connection_timeout_ms: int | None = integer(
        "zookeeper.connection.timeout.ms", default=None, importance=HIGH
    )
    """The connection timeout; default: the session timeout."""
    zookeeper_max_in_flight_requests: int = integer(
        "zookeeper.max.in.flight.requests",
        default=10,
        valid=at_least(1),
        importance=HIGH,
        effect=no_effect("the ZooKeeper client does not limit requests in flight"),
    )
    """The maximum number of unanswered requests to ZooKeeper."""
    zookeeper_set_acl: bool = boolean("zookeeper.set.acl", default=False, importance=HIGH)
    """Whether znodes are created with ACLs."""
    zookeeper_auth_digest: Password | None = password(
        "zookeeper.auth.digest", default=None, internal=True
    )
    """Credentials `user:password` for the digest scheme. Not a setting of Kafka."""
    zookeeper_client_cnxn_socket: str | None = string(
        "zookeeper.clientCnxnSocket",
        default=None,
        effect=no_effect("it names a class of the Java client; TLS needs none here"),
    )
    """The socket class of the Java client."""
    zookeeper_ssl_client_enable: bool = boolean("zookeeper.ssl.client.enable", default=False)
    """Whether connections to ZooKeeper use TLS."""
    zookeeper_ssl_protocol: str = string(
        "zookeeper.ssl.protocol",
        default="TLSv1.2",
        importance=LOW,
        effect=no_effect("the highest version that both sides support is used"),
    )
    """The TLS protocol for ZooKeeper."""
    zookeeper_ssl_enabled_protocols: tuple[str, ...] | None = strings(
        "zookeeper.ssl.enabled.protocols",
        default=None,
        importance=LOW,
        effect=rejected(
            "the TLS versions of ZooKeeper connections cannot be chosen; remove the setting"
        ),
    )
    """The enabled TLS protocols for ZooKeeper."""
    zookeeper_ssl_cipher_suites: tuple[str, ...] | None = strings(
        "zookeeper.ssl.cipher.suites",
        default=None,
        importance=LOW,
        effect=rejected(
            "the cipher suites of ZooKeeper connections cannot be chosen; remove the setting"
        ),
    )
    """The enabled cipher suites for ZooKeeper."""
    zookeeper_ssl_keystore_type: str | None = string("zookeeper.ssl.keystore.type", default=None)
    """The format of the key store for ZooKeeper."""
    zookeeper_ssl_keystore_location: str | None = string(
        "zookeeper.ssl.keystore.location", default=None
    )
    """The file with the client key and certificate for ZooKeeper."""
    zookeeper_ssl_keystore_password: Password | None = password(
        "zookeeper.ssl.keystore.password", default=None
    )
    """The password of the key store for ZooKeeper."""
    zookeeper_ssl_truststore_type: str | None = string(
        "zookeeper.ssl.truststore.type", default=None
    )
    """The format of the trust store for ZooKeeper."""
    zookeeper_ssl_truststore_location: str | None = string(
        "zookeeper.ssl.truststore.location", default=None
    )
    """The file with the certificates trusted for ZooKeeper."""
    zookeeper_ssl_truststore_password: Password | None = password(
        "zookeeper.ssl.truststore.password",
        default=None,
        effect=no_effect("a PEM trust store has no password"),
    )
    """The password of the trust store for ZooKeeper."""
    zookeeper_ssl_endpoint_identification_algorithm: str = string(
        "zookeeper.ssl.endpoint.identification.algorithm", default="HTTPS", importance=LOW
    )
    """The algorithm for host name verification of ZooKeeper; empty: no verification."""
    zookeeper_ssl_crl_enable: bool = boolean(
        "zookeeper.ssl.crl.enable",
        default=False,
        importance=LOW,
        effect=rejected("certificate revocation is not checked here; set it to false"),
    )
    """Whether certificate revocation lists are checked for ZooKeeper."""
    zookeeper_ssl_ocsp_enable: bool = boolean(
        "zookeeper.ssl.ocsp.enable",
        default=False,
        importance=LOW,
        effect=rejected("certificate revocation is not checked here; set it to false"),
    )
    """Whether OCSP is used for certificates of ZooKeeper."""
    zookeeper_metadata_migration_enable: bool = boolean(
        "zookeeper.metadata.migration.enable",
        default=False,
        importance=HIGH,
        effect=rejected("this broker has no KRaft mode; set it to false"),
    )
    """Whether the cluster is being migrated to KRaft."""
    zookeeper_metadata_migration_min_batch_size: int = integer(
        "zookeeper.metadata.migration.min.batch.size",
        default=200,
        valid=at_least(1),
        internal=True,
        effect=no_effect("only KRaft uses it, which this broker does not have"),
    )
    """The minimum batch size of the migration to KRaft."""
