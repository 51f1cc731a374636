"""Broker settings of ZooKeeper."""

from broker.config.definitions import (
    HIGH,
    LOW,
    Settings,
    boolean,
    integer,
    password,
    string,
    strings,
)
from broker.config.validators import at_least
from broker.config.values import Password


class ZooKeeperSettings(Settings):
    """The ensemble that holds the cluster's metadata; without one, the embedded store does."""

    zookeeper_connect: str | None = string("zookeeper.connect", default=None, importance=HIGH)
    """The ensemble, `host:port,host:port/chroot`; not given: the embedded store."""
    zookeeper_session_timeout_ms: int = integer(
        "zookeeper.session.timeout.ms", default=18_000, importance=HIGH
    )
    """How long the ensemble waits for a broker before it counts as gone."""
    zookeeper_connection_timeout_ms: int | None = integer(
        "zookeeper.connection.timeout.ms", default=None, importance=HIGH
    )
    """How long connecting may take; as long as the session if not given."""
    zookeeper_max_in_flight_requests: int = integer(
        "zookeeper.max.in.flight.requests", default=10, valid=at_least(1), importance=HIGH
    )
    """Requests on their way to the ensemble at the same time."""
    zookeeper_set_acl: bool = boolean("zookeeper.set.acl", default=False, importance=HIGH)
    """Whether znodes are protected against others."""
    zookeeper_auth_digest: Password | None = password(
        "zookeeper.auth.digest", default=None, internal=True
    )
    """Credentials `user:password` of ZooKeeper's digest scheme; a setting that Kafka lacks."""
    zookeeper_client_cnxn_socket: str | None = string("zookeeper.clientCnxnSocket", default=None)
    """The socket class of the Java client."""
    zookeeper_ssl_client_enable: bool = boolean("zookeeper.ssl.client.enable", default=False)
    """Whether the ensemble is reached over TLS."""
    zookeeper_ssl_protocol: str = string(
        "zookeeper.ssl.protocol", default="TLSv1.2", importance=LOW
    )
    """The TLS version used with the ensemble."""
    zookeeper_ssl_enabled_protocols: tuple[str, ...] | None = strings(
        "zookeeper.ssl.enabled.protocols", default=None, importance=LOW
    )
    """The TLS versions accepted from the ensemble."""
    zookeeper_ssl_cipher_suites: tuple[str, ...] | None = strings(
        "zookeeper.ssl.cipher.suites", default=None, importance=LOW
    )
    """The cipher suites accepted from the ensemble."""
    zookeeper_ssl_keystore_type: str | None = string("zookeeper.ssl.keystore.type", default=None)
    """The format of the key store for the ensemble."""
    zookeeper_ssl_keystore_location: str | None = string(
        "zookeeper.ssl.keystore.location", default=None
    )
    """The file with the key and certificate shown to the ensemble."""
    zookeeper_ssl_keystore_password: Password | None = password(
        "zookeeper.ssl.keystore.password", default=None
    )
    """The password of the key store for the ensemble."""
    zookeeper_ssl_truststore_type: str | None = string(
        "zookeeper.ssl.truststore.type", default=None
    )
    """The format of the trust store for the ensemble."""
    zookeeper_ssl_truststore_location: str | None = string(
        "zookeeper.ssl.truststore.location", default=None
    )
    """The file with the certificates trusted of the ensemble."""
    zookeeper_ssl_truststore_password: Password | None = password(
        "zookeeper.ssl.truststore.password", default=None
    )
    """The password of the trust store for the ensemble."""
    zookeeper_ssl_endpoint_identification_algorithm: str = string(
        "zookeeper.ssl.endpoint.identification.algorithm", default="HTTPS", importance=LOW
    )
    """How the ensemble's names are compared with their certificates."""
    zookeeper_ssl_crl_enable: bool = boolean(
        "zookeeper.ssl.crl.enable", default=False, importance=LOW
    )
    """Whether revocation lists are asked about the ensemble's certificates."""
    zookeeper_ssl_ocsp_enable: bool = boolean(
        "zookeeper.ssl.ocsp.enable", default=False, importance=LOW
    )
    """Whether OCSP is asked about the ensemble's certificates."""
    zookeeper_metadata_migration_enable: bool = boolean(
        "zookeeper.metadata.migration.enable", default=False, importance=HIGH
    )
    """Whether the cluster is being moved to KRaft."""
    zookeeper_metadata_migration_min_batch_size: int = integer(
        "zookeeper.metadata.migration.min.batch.size", default=200, valid=at_least(1), internal=True
    )
    """Records that are gathered into one batch of that move."""
