"""Opens the metadata store of a broker: ZooKeeper if it is configured, else the embedded store.

What kazoo supports is configured by Kafka's keys:

    zookeeper.connect                   host:port,host:port/chroot; a missing chroot is created
    zookeeper.session.timeout.ms        and zookeeper.connection.timeout.ms
    zookeeper.set.acl                   znodes that only this broker's credentials may change
    zookeeper.auth.digest               user:password; not in Kafka, which uses a JAAS file
    zookeeper.ssl.client.enable         TLS, with the settings below
    zookeeper.ssl.truststore.location   trusted certificates: PEM
    zookeeper.ssl.keystore.location     key and certificate in one file: PEM
    zookeeper.ssl.keystore.password     of the key
    zookeeper.ssl.endpoint.identification.algorithm   empty: host names are not verified
"""

from typing import TYPE_CHECKING, Final

from broker.clock import Clock
from broker.config import BrokerConfig, ConfigError
from broker.metadata.embedded import METADATA_FILE, EmbeddedStore
from broker.metadata.store import MetadataStore

if TYPE_CHECKING:
    from broker.metadata.zookeeper import ZooKeeperSettings

_PEM: Final = ("PEM", None)


async def open_store(
    config: BrokerConfig, clock: Clock, *, belongs_to_cluster: bool
) -> MetadataStore:
    """Open the store; ConfigError or StoreError say why that is impossible.

    If the broker `belongs_to_cluster`, that cluster's chroot must exist: it is not created.
    """
    if config.zookeeper_connect:
        # Imported here: a single broker starts faster without kazoo.
        from broker.metadata.zookeeper import ZooKeeperStore

        settings = zookeeper_settings(config)
        return await ZooKeeperStore.open(settings, create_chroot=not belongs_to_cluster)
    first = config.log_directories[0]
    try:
        first.mkdir(0o750, parents=True, exist_ok=True)
    except OSError as error:
        problem = "not a directory" if first.exists() else error.strerror
        raise ConfigError(f"log.dirs: cannot use {first}: {problem}") from error
    return EmbeddedStore.open(first / METADATA_FILE, clock)


def zookeeper_settings(config: BrokerConfig) -> "ZooKeeperSettings":
    """The settings of the connection; ConfigError for what kazoo does not support."""
    from broker.metadata.zookeeper import ZooKeeperSettings

    digest, key_password = config.zookeeper_auth_digest, config.zookeeper_ssl_keystore_password
    if config.zookeeper_set_acl and digest is None:
        raise ConfigError("zookeeper.set.acl=true needs credentials: set zookeeper.auth.digest")
    key_file = _pem(config, "keystore")
    return ZooKeeperSettings(
        connect=config.zookeeper_connect or "",
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connect_timeout_ms,
        set_acl=config.zookeeper_set_acl,
        auth=(("digest", str(digest)),) if digest else (),
        use_tls=config.zookeeper_ssl_client_enable,
        ca_file=_pem(config, "truststore"),
        cert_file=key_file,
        key_file=key_file,
        key_password=str(key_password) if key_password else None,
        check_hostname=bool(config.zookeeper_ssl_endpoint_identification_algorithm),
    )


def _pem(config: BrokerConfig, store: str) -> str | None:
    """The location of a key or trust store."""
    location: str | None = getattr(config, f"zookeeper_ssl_{store}_location")
    store_type: str | None = getattr(config, f"zookeeper_ssl_{store}_type")
    if location is not None and store_type not in _PEM:
        raise ConfigError(
            f"zookeeper.ssl.{store}.type={store_type}: only PEM is supported; "
            "convert PKCS12 with openssl pkcs12"
        )
    return location
