"""The output of kafka-broker-api-versions."""

from collections.abc import Iterable, Iterator, Sequence

from broker.protocol.api_keys import ApiKey
from kctl.model.api_versions import ApiRange, newest_declared
from kctl.model.cluster import Broker

# APIs that Kafka 3.9's tool knows and kctl does not use. All of them are at version 0.
_KNOWN_TO_KAFKA = {
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
}
_LAST_OF_KAFKA_3_9 = 87
_NAMES = {
    int(api): api.display_name for api in ApiKey if api <= _LAST_OF_KAFKA_3_9
} | _KNOWN_TO_KAFKA


def broker_api_versions(broker: Broker, ranges: Sequence[ApiRange]) -> Iterator[str]:
    """One broker's block."""
    yield f"{broker.host}:{broker.port} (id: {broker.id} rack: {broker.rack or 'null'}) -> ("
    yield from _separated(_lines(ranges))
    yield ")"


def _lines(ranges: Sequence[ApiRange]) -> Iterator[str]:
    """Sorted by API key: what the broker supports, and what the tool would expect."""
    served = {api.key: api for api in ranges}
    for key in sorted(served.keys() | _NAMES.keys()):
        title = f"{_NAMES.get(key, 'UNKNOWN')}({key})"
        yield f"{title}: {_versions(served[key]) if key in served else 'UNSUPPORTED'}"


def _versions(api: ApiRange) -> str:
    same = api.min_version == api.max_version
    versions = str(api.min_version) if same else f"{api.min_version} to {api.max_version}"
    if api.key not in _NAMES:
        return versions
    newest = 0 if api.key in _KNOWN_TO_KAFKA else newest_declared(api.key)
    if newest < api.min_version:
        return f"{versions} [unusable: node too new]"
    return f"{versions} [usable: {min(newest, api.max_version)}]"


def _separated(lines: Iterable[str]) -> Iterator[str]:
    """Indented by a tab, with commas between."""
    text = list(lines)
    yield from (f"\t{line}," for line in text[:-1])
    yield f"\t{text[-1]}"
