"""Rows and columns of `kctl api-versions`."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kctl.cli.tables import Column
from kctl.model.api_versions import ApiRange
from kctl.model.cluster import Broker

COLUMNS = [
    Column("api"),
    Column("api_key", "KEY", right=True),
    Column("min_version", "MIN", right=True),
    Column("max_version", "MAX", right=True),
    Column("used_version", "USED", right=True),
    Column("brokers"),
]


def version_rows(answers: Iterable[tuple[Broker, Sequence[ApiRange]]]) -> list[dict[str, object]]:
    """One row per API and range of versions, sorted by API key."""
    brokers_by_range: dict[ApiRange, list[int]] = defaultdict(list)
    for broker, ranges in answers:
        for api in ranges:
            brokers_by_range[api].append(broker.id)
    ordered = sorted(brokers_by_range.items(), key=lambda item: (item[0].key, item[1]))
    return [_row(api, broker_ids) for api, broker_ids in ordered]


def _row(api: ApiRange, broker_ids: list[int]) -> dict[str, object]:
    return {
        "api": api.name or f"unknown-{api.key}",
        "api_key": api.key,
        "min_version": api.min_version,
        "max_version": api.max_version,
        "used_version": api.used_version,
        "brokers": broker_ids,
    }
