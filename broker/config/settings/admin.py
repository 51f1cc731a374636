"""Settings of the admin port, which Kafka does not have; see `broker.admin`."""

from typing import Any
from urllib.parse import urlsplit

from broker.config.definitions import Settings, integer, password, string
from broker.config.validators import at_least, one_of
from broker.config.values import Password, invalid_value


def _url(key: str, value: Any) -> None:
    if value is None:
        return
    try:
        url = urlsplit(value)
        is_valid = url.scheme in {"http", "https"} and url.hostname and url.port is not None
    except ValueError:  # the port is not a number in range
        is_valid = False
    if not is_valid or url.path not in {"", "/"} or url.query:
        raise invalid_value(key, value, "expected http://host:port or https://host:port")


class AdminSettings(Settings):
    """Metrics and health over HTTP."""

    admin_listeners: str | None = string("admin.listeners", default=None, valid=_url, internal=True)
    """The address of the admin port, `http://host:port` or `https://host:port`, with /metrics,
    /livez, /readyz and /version; null disables it. Not a setting of Kafka."""
    admin_bearer_token: Password | None = password(
        "admin.bearer.token", default=None, internal=True
    )
    """The token that requests to the admin port must carry; null: none is needed. Not a setting of
    Kafka."""
    admin_tls_certificate: str | None = string("admin.tls.certificate", default=None, internal=True)
    """A PEM file with the certificate chain and the private key of the admin port, for https. Not a
    setting of Kafka."""
    metrics_dialect: str = string(
        "metrics.dialect",
        default="jmx",
        valid=one_of("jmx", "confluent", "both"),
        internal=True,
    )
    """The naming of metrics: `jmx` follows the JMX exporter's rules for Kafka's MBeans, `confluent`
    Confluent's rules; `both` exposes both. Not a setting of Kafka."""
    metrics_max_partitions: int = integer(
        "metrics.max.partitions", default=10_000, valid=at_least(0), internal=True
    )
    """The number of partitions with their own series in /metrics. Not a setting of Kafka."""
