"""The endpoints of the admin port.

/metrics   Prometheus or OpenMetrics, depending on the Accept header
/livez     200 if the event loop responds within a second
/readyz    200 if the broker serves clients; with ?strict, only if no partition it leads is
under-replicated
/version   versions of this program and of the protocol, as JSON
"""

import ssl
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from broker import __version__
from broker.admin.broker_metrics import broker_metrics, process_families
from broker.admin.broker_state import BrokerState
from broker.admin.coordinator_metrics import controller_metrics, group_metrics, load_metrics
from broker.admin.dialects import Dialect, Metric
from broker.admin.exposition import OPENMETRICS, TEXT, Family, Labels, exposition
from broker.admin.http_server import (
    AdminHttpServer,
    Answer,
    Endpoint,
    HttpConfig,
    Query,
    json_answer,
)
from broker.admin.quota_metrics import quota_families
from broker.admin.request_metrics import (
    flush_families,
    metadata_families,
    request_metrics,
    time_families,
)
from broker.admin.sources import AdminSources
from broker.admin.topic_metrics import partition_metrics, traffic_metrics
from broker.config import BrokerConfig, ConfigError

_LOOP_RESPONDS_S: Final = 1.0
_KAFKA_VERSION: Final = "3.9"


class AdminServer:
    """The admin port of one broker: bound by the constructor, open from `start` to `stop`."""

    def __init__(self, config: BrokerConfig, sources: AdminSources) -> None:
        """OSError if the address cannot be bound; ConfigError if the certificate is not usable."""
        self._sources = sources
        self._dialect = Dialect(config.metrics_dialect)
        self._max_partitions = config.metrics_max_partitions
        self._labels = Labels()
        endpoints: dict[str, Endpoint] = {
            "/metrics": self._metrics,
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/version": self._version,
        }
        http = _http_config(config)
        self._scheme = "http" if http.tls is None else "https"
        self._host = f"[{http.host}]" if ":" in http.host else http.host
        self._server = AdminHttpServer(http, endpoints)

    @property
    def url(self) -> str:
        """The base URL, with the port that was bound."""
        return f"{self._scheme}://{self._host}:{self._server.port}"

    def start(self) -> None:
        """Answer requests."""
        self._server.start()

    def stop(self) -> None:
        """Close the port."""
        self._server.stop()

    # --- endpoints, each in a thread of its own ---------------------------------------------------

    def _metrics(self, query: Query, accept: str) -> Answer:
        is_open = "application/openmetrics-text" in accept
        body = exposition(self._families(), openmetrics=is_open, labels=self._labels)
        return Answer(HTTPStatus.OK, body, OPENMETRICS if is_open else TEXT)

    def _families(self) -> Iterator[Family]:
        """All families, each under a name of its own."""
        for metric in self._all_metrics():
            yield from metric.families(self._dialect)
        yield from time_families(self._sources.requests, self._dialect)
        if self._sources.services is not None:
            times = self._sources.services.replicas.logs.flush_times
            yield from flush_families(times, self._dialect)
        session = self._sources.session
        if session is not None and session.request_times.count:
            yield from metadata_families(session.request_times, self._dialect)
        yield from quota_families(self._sources, self._dialect)
        yield from process_families()

    def _all_metrics(self) -> Iterator[Metric]:
        sources, services = self._sources, self._sources.services
        yield from broker_metrics(sources)
        yield from request_metrics(sources.requests)
        if services is not None:
            yield from traffic_metrics(services)
            yield from controller_metrics(services)
            yield from group_metrics(services)
            yield from load_metrics(services)
            yield from partition_metrics(services, self._max_partitions)

    def _livez(self, query: Query, accept: str) -> Answer:
        responded = threading.Event()
        run_in_loop = self._sources.run_in_loop
        if run_in_loop is not None:
            run_in_loop(responded.set)
        if responded.wait(_LOOP_RESPONDS_S):
            return Answer(HTTPStatus.OK, b"ok\n")
        text = b"the event loop has not responded for a second\n"
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, text)

    def _readyz(self, query: Query, accept: str) -> Answer:
        reasons = list(self._not_ready(is_strict="strict" in query))
        if not reasons:
            return Answer(HTTPStatus.OK, b"ok\n")
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "".join(f"{r}\n" for r in reasons).encode())

    def _not_ready(self, *, is_strict: bool) -> Iterator[str]:
        """Reasons why clients should not be sent to this broker."""
        sources = self._sources
        if sources.state is not BrokerState.RUNNING or sources.services is None:
            yield f"the broker is not running: {sources.state.name.lower().replace('_', ' ')}"
            return
        if not sources.services.metadata.initialized.is_set():
            yield "no metadata has been received from the controller"
        if is_strict:
            led = [p for p in list(sources.services.replicas.partitions.values()) if p.is_leader]
            count = sum(len(p.state.isr) < len(p.state.replicas) for p in led)
            if count:
                yield f"{count} of {len(led)} led partitions are under-replicated"

    def _version(self, query: Query, accept: str) -> Answer:
        document = {
            "version": __version__,
            "kafka_version": _KAFKA_VERSION,
            "broker_id": self._sources.broker_id,
        }
        return json_answer(HTTPStatus.OK, document)


def _http_config(config: BrokerConfig) -> HttpConfig:
    url = urlsplit(config.admin_listeners or "")
    tls = None
    if url.scheme == "https":
        if config.admin_tls_certificate is None:
            raise ConfigError("admin.listeners needs admin.tls.certificate for https")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            tls.load_cert_chain(config.admin_tls_certificate)
        except OSError as error:  # includes ssl.SSLError
            raise ConfigError(
                f"cannot read admin.tls.certificate={config.admin_tls_certificate}: {error}"
            ) from error
    token = config.admin_bearer_token
    return HttpConfig(url.hostname or "", url.port or 0, tls, token)
