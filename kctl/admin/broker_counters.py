"""Counters of brokers from their metrics: our admin ports, or Apache Kafka's JMX exporter.

Both serve the same names, so one parser is enough. Our admin port says in /version which broker it
belongs to; for other endpoints the id is given: `2=broker2:7071`.
"""

import json
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from kctl.admin.metrics import metrics_url, read_metrics
from kctl.cli.errors import CliError, usage_error
from kctl.model.metrics import Series
from kctl.model.top import BrokerCounters, TrafficCounters

_TRAFFIC: Final = {
    "kafka_server_brokertopicmetrics_messagesin_total": "messages_in",
    "kafka_server_brokertopicmetrics_bytesin_total": "bytes_in",
    "kafka_server_brokertopicmetrics_bytesout_total": "bytes_out",
}
_REQUESTS: Final = "kafka_network_requestmetrics_requests_total"
_TIMES: Final = "kafka_network_requestmetrics_totaltimems"


@dataclass
class MetricsEndpoint:
    """Where a broker serves its metrics; `broker_id` is None until its /version was read."""

    url: str
    broker_id: int | None = None

    def read(self, timeout_s: float, token: str | None) -> tuple[int, BrokerCounters]:
        """The broker's id and its counters; CliError if the endpoint does not answer."""
        if self.broker_id is None:
            self.broker_id = _broker_id(self.url, timeout_s, token)
        try:
            series = read_metrics(self.url, timeout_s, token)
        except HTTPException as error:
            raise CliError(f"cannot read {self.url}: {error}") from error
        return self.broker_id, counters_of(series, time.time())


def parse_endpoints(text: str) -> list[MetricsEndpoint]:
    """`HOST:PORT` or `ID=HOST:PORT`, separated by commas; usage error for anything else."""
    found = []
    for one in filter(None, (piece.strip() for piece in text.split(","))):
        broker_id, equals, address = one.rpartition("=")
        if equals and not broker_id.isdecimal():
            raise usage_error(
                f"--admin {one}: {broker_id!r} is not a broker id", "e.g. 2=host:7071"
            )
        found.append(MetricsEndpoint(metrics_url(address), int(broker_id) if equals else None))
    return found


def read_counters(
    endpoints: Sequence[MetricsEndpoint], timeout_s: float, token: str | None
) -> tuple[dict[int, BrokerCounters], list[str]]:
    """The counters of all brokers at once, and what could not be read."""
    if not endpoints:
        return {}, []
    found: dict[int, BrokerCounters] = {}
    problems: list[str] = []

    def read(endpoint: MetricsEndpoint) -> tuple[int, BrokerCounters] | CliError:
        try:
            return endpoint.read(timeout_s, token)
        except CliError as error:
            return error

    with ThreadPoolExecutor(min(16, len(endpoints))) as threads:
        for result in threads.map(read, endpoints):
            if isinstance(result, CliError):
                problems.append(result.message)
            else:
                found[result[0]] = result[1]
    return found, problems


def counters_of(series: Iterable[Series], time_s: float) -> BrokerCounters:
    """The counters in a broker's metrics."""
    by_topic: dict[str, dict[str, float]] = {}
    requests = 0.0
    p99: float | None = None
    for one in series:
        if (name := _TRAFFIC.get(one.name)) is not None:
            by_topic.setdefault(one.labels.get("topic", ""), {})[name] = one.value
        elif one.name == _REQUESTS:
            requests += one.value
        elif one.name == _TIMES and one.labels.get("request") == "Produce":
            is_p99 = one.labels.get("quantile") == "0.99"
            p99 = one.value if is_p99 else p99
    total = by_topic.pop("", {})
    topics = {topic: TrafficCounters(**values) for topic, values in by_topic.items()}
    return BrokerCounters(time_s, TrafficCounters(**total), topics, requests, p99)


def _broker_id(url: str, timeout_s: float, token: str | None) -> int:
    parts = urlsplit(url)
    version = f"{parts.scheme}://{parts.netloc}/version"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urlopen(Request(version, headers=headers), timeout=timeout_s) as response:  # noqa: S310  # http or https
            return int(json.loads(response.read(65536))["broker_id"])
    except OSError as error:
        raise CliError(f"cannot read {version}: {getattr(error, 'reason', error)}") from error
    except (HTTPException, ValueError, KeyError, TypeError) as error:
        raise CliError(
            f"{version} does not name a broker id", f"specify it: ID={parts.netloc}"
        ) from error
