"""Metrics per API: requests, errors, times by phase."""

from collections.abc import Iterator
from typing import Final

from broker.admin.dialects import Dialect, Metric, counter
from broker.admin.exposition import Family, Kind
from broker.errors import ErrorCode
from broker.metrics.histogram import Histogram, quantiles_ms
from broker.metrics.request_metrics import ApiMetrics, RequestMetrics
from broker.protocol.api_keys import ApiKey

_QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_LABELS: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")


def kafka_name(api_key: int) -> str:
    """The name of an API in Kafka's metrics: `OffsetForLeaderEpoch`."""
    return "".join(word.capitalize() for word in ApiKey(api_key).name.split("_"))


def request_metrics(requests: RequestMetrics) -> Iterator[Metric]:
    """Counts by API and version, and by API and error code."""
    counts = counter("network_requestmetrics_requests", "Requests.", "request", "version")
    errors = counter("network_requestmetrics_errors", "Error codes sent.", "request", "error")
    for api_key, api in requests.by_api().items():
        name = kafka_name(api_key)
        for version, count in api.requests.copy().items():
            counts.add(count, name, str(version))
        for code, count in api.errors.copy().items():
            errors.add(count, name, ErrorCode.name_of(code))
    yield counts
    yield errors


def time_families(requests: RequestMetrics, dialect: Dialect) -> Iterator[Family]:
    """Times in milliseconds: quantiles of the last minutes, and the number of requests."""
    apis = requests.by_api()
    for phase in ("requestqueue", "local", "remote", "total"):
        name = f"kafka_network_requestmetrics_{phase}timems"
        text = f"Time of requests in milliseconds, phase {phase}."
        quantiles = Family(name, text, Kind.GAUGE, ("request", "quantile"))
        counts = Family(f"{name}_count", f"{text} Number.", Kind.COUNTER, ("request",))
        for api_key, api in apis.items():
            request = kafka_name(api_key)
            buckets, count = _phase(api, phase)
            for label, value in zip(_LABELS, quantiles_ms(buckets, _QUANTILES), strict=True):
                quantiles.samples.append(((request, label), value))
            counts.samples.append(((request,), count))
        if dialect is not Dialect.JMX:  # Confluent's rules drop `_count`
            quantiles.samples += counts.samples
        yield quantiles
        if dialect is not Dialect.CONFLUENT:
            yield counts


def flush_families(times: Histogram, dialect: Dialect) -> Iterator[Family]:
    """LogFlushRateAndTimeMs: quantiles of the last minutes, and the number of flushes."""
    name = "kafka_log_logflushstats_logflushrateandtimems"
    quantiles = Family(name, "Time of log flushes in milliseconds.", Kind.GAUGE, ("quantile",))
    for label, value in zip(_LABELS, quantiles_ms(times.counts(), _QUANTILES), strict=True):
        quantiles.samples.append(((label,), value))
    if dialect is not Dialect.JMX:
        quantiles.samples.append(((), times.count))
    yield quantiles
    if dialect is not Dialect.CONFLUENT:
        yield Family(f"{name}_count", "Log flushes.", Kind.COUNTER, samples=[((), times.count)])


def _phase(api: ApiMetrics, phase: str) -> tuple[list[int], int]:
    """Counts per bucket and in all; requests that were answered at once count in every phase."""
    if phase == "requestqueue":
        return api.queue.counts(), api.queue.count
    if phase == "remote":
        buckets = api.remote.counts()
        buckets[0] += sum(api.immediate.counts())  # they did not wait
        return buckets, api.remote.count + api.immediate.count
    waited: Histogram = api.local if phase == "local" else api.total
    immediate = api.immediate.counts()
    buckets = [a + b for a, b in zip(waited.counts(), immediate, strict=True)]
    return buckets, waited.count + api.immediate.count
