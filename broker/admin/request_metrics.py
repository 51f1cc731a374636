"""Metrics per API: requests, errors, times by phase."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final

from broker.admin.dialects import Dialect, Metric, counter
from broker.admin.exposition import Family, Kind
from broker.errors import ErrorCode
from broker.metrics.histogram import Histogram, quantiles_ms
from broker.metrics.request_metrics import ApiMetrics, RequestMetrics
from broker.protocol.api_keys import ApiKey

_QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_PHASES: Final[dict[str, Callable[[ApiMetrics], Histogram]]] = {
    "requestqueue": attrgetter("queue"),
    "local": attrgetter("local"),
    "remote": attrgetter("remote"),
    "responsesend": attrgetter("send"),
    "total": attrgetter("total"),
}
_LABELS: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")


def kafka_name(api_key: int) -> str:
    """The name of an API in Kafka's metrics: `OffsetForLeaderEpoch`."""
    return "".join(word.capitalize() for word in ApiKey(api_key).name.split("_"))


def request_metrics(requests: RequestMetrics) -> Iterator[Metric]:
    """Counts by API and version, and by API and error code."""
    counts = counter("network_requestmetrics_requests", "Requests.", "request", "version")
    errors = counter("network_requestmetrics_errors", "Error codes sent.", "request", "error")
    for api_key, versions in requests.requests().items():
        for version, count in versions.items():
            counts.add(count, kafka_name(api_key), str(version))
    for api_key, api in requests.by_api().items():
        name = kafka_name(api_key)
        for code, count in api.errors.copy().items():
            errors.add(count, name, ErrorCode.name_of(code))
    yield counts
    yield errors


def time_families(requests: RequestMetrics, dialect: Dialect) -> Iterator[Family]:
    """Times in milliseconds: quantiles of the last minutes, and the number of requests."""
    apis = requests.by_api()
    numbers = {key: sum(versions.values()) for key, versions in requests.requests().items()}
    for phase, histogram_of in _PHASES.items():
        name = f"kafka_network_requestmetrics_{phase}timems"
        text = f"Time of requests in milliseconds, phase {phase}."
        quantiles = Family(name, text, Kind.GAUGE, ("request", "quantile"))
        counts = Family(f"{name}_count", f"{text} Number.", Kind.COUNTER, ("request",))
        for api_key, api in apis.items():
            request = kafka_name(api_key)
            buckets = histogram_of(api).counts()
            for label, value in zip(_LABELS, quantiles_ms(buckets, _QUANTILES), strict=True):
                quantiles.samples.append(((request, label), value))
            counts.samples.append(((request,), numbers.get(api_key, 0)))
        if dialect is not Dialect.JMX:  # Confluent's rules drop `_count`
            quantiles.samples += counts.samples
        yield quantiles
        if dialect is not Dialect.CONFLUENT:
            yield counts


def flush_families(times: Histogram, dialect: Dialect) -> Iterator[Family]:
    """LogFlushRateAndTimeMs: quantiles of the last minutes, and the number of flushes."""
    name = "log_logflushstats_logflushrateandtimems"
    return _timer(name, "Time of log flushes in milliseconds.", times, dialect)


def metadata_families(times: Histogram, dialect: Dialect) -> Iterator[Family]:
    """ZooKeeperRequestLatencyMs."""
    name = "server_zookeeperclientmetrics_zookeeperrequestlatencyms"
    return _timer(name, "Latency of ZooKeeper in milliseconds.", times, dialect)


def _timer(mbean: str, text: str, times: Histogram, dialect: Dialect) -> Iterator[Family]:
    """Quantiles and the number of durations; Confluent's rules drop `_count`."""
    name = f"kafka_{mbean}"
    quantiles = Family(name, text, Kind.GAUGE, ("quantile",))
    for label, value in zip(_LABELS, quantiles_ms(times.counts(), _QUANTILES), strict=True):
        quantiles.samples.append(((label,), value))
    if dialect is not Dialect.JMX:
        quantiles.samples.append(((), times.count))
    yield quantiles
    if dialect is not Dialect.CONFLUENT:
        yield Family(f"{name}_count", f"{text} Number.", Kind.COUNTER, samples=[((), times.count)])
