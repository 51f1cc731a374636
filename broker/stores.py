"""Opens the store that a broker keeps its metadata in: ZooKeeper if it is told one, else its own.

To ZooKeeper, what kazoo can do is offered under Kafka's keys:

    zookeeper.connect                   host:port,host:port/chroot; a chroot that is missing is made
    zookeeper.session.timeout.ms        and zookeeper.connection.timeout.ms
    zookeeper.set.acl                   nodes that only this broker's credentials may change
    zookeeper.auth.digest               user:password; ours, Kafka would use a JAAS file
    zookeeper.ssl.client.enable         TLS, with the following
    zookeeper.ssl.truststore.location   the certificates that are trusted: PEM
    zookeeper.ssl.keystore.location     key and certificate in one file: PEM
    zookeeper.ssl.keystore.password     of the key
    zookeeper.ssl.endpoint.identification.algorithm   empty: names are not compared
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
    """The store of this broker; ConfigError or StoreError say why it cannot be had.

    A broker that `belongs_to_cluster` finds its cluster's tree or none: for it no chroot is made.
    """
    if config.zookeeper_connect:
        # Imported when needed: a broker alone starts sooner without kazoo.
        from broker.metadata.zookeeper import ZooKeeperStore

        settings = zookeeper_settings(config)
        return await ZooKeeperStore.open(settings, create_chroot=not belongs_to_cluster)
    first = config.log_directories[0]
    try:
        first.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = "not a directory" if first.exists() else error.strerror
        raise ConfigError(f"log.dirs: {first} cannot be used: {problem}") from error
    return EmbeddedStore.open(first / METADATA_FILE, clock)


def zookeeper_settings(config: BrokerConfig) -> "ZooKeeperSettings":
    """The settings of a connection; ConfigError for what kazoo cannot do."""
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
    """The file of a key or trust store."""
    location: str | None = getattr(config, f"zookeeper_ssl_{store}_location")
    store_type: str | None = getattr(config, f"zookeeper_ssl_{store}_type")
    if location is not None and store_type not in _PEM:
        raise ConfigError(
            f"zookeeper.ssl.{store}.type={store_type}: only PEM is understood here; "
            "openssl pkcs12 turns PKCS12 into it"
        )
    return location
