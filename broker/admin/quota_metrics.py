"""Metrics of client quotas: usage and throttle times of the clients that have a quota."""

import threading
from collections.abc import Iterator
from typing import Final

from broker.admin.dialects import Dialect
from broker.admin.exposition import Family
from broker.admin.sources import AdminSources
from broker.quota.client_quota_manager import QuotaUse

_PATIENCE_S: Final = 1.0
_RATES: Final = {"Produce": "byte_rate", "Fetch": "byte_rate", "Request": "request_time"}
"""Type of quota, and what Kafka calls its rate."""


def quota_families(sources: AdminSources, dialect: Dialect) -> Iterator[Family]:
    """The families of both dialects; none while no quota is set.

    Rates are read in the event loop: reading them drops old samples.
    """
    found = _uses(sources)
    if dialect is not Dialect.CONFLUENT:
        labels = ("resource", "user", "clientId")
        by_name = {
            name: Family(f"kafka_server_quota_{name}", text, labels=labels)
            for name, text in (
                ("byte_rate", "Bytes per second."),
                ("request_time", "Percent of a thread."),
                ("throttle_time", "Average throttle time in milliseconds."),
            )
        }
        for resource, uses in found.items():
            for use in uses:
                where = (resource, use.user, use.client_id)
                by_name[_RATES[resource]].samples.append((where, use.rate))
                by_name["throttle_time"].samples.append((where, use.throttle_ms))
        yield from (family for family in by_name.values() if family.samples)
    if dialect is not Dialect.JMX:
        for resource, uses in found.items():
            yield from _confluent(resource, uses)


def _confluent(resource: str, uses: list[QuotaUse]) -> Iterator[Family]:
    prefix, labels = f"kafka_server_{resource.lower()}", ("user", "client_id")
    rates = Family(f"{prefix}_{_RATES[resource]}", f"Use of quota {resource}.", labels=labels)
    delays = Family(f"{prefix}_throttle_time", "Average throttle time in ms.", labels=labels)
    for use in uses:
        rates.samples.append(((use.user, use.client_id), use.rate))
        delays.samples.append(((use.user, use.client_id), use.throttle_ms))
    yield from (rates, delays)


def _uses(sources: AdminSources) -> dict[str, list[QuotaUse]]:
    """Measured usage by quota type; only types for which a quota is set."""
    quotas, services, run_in_loop = sources.quotas, sources.services, sources.run_in_loop
    if quotas is None or services is None or run_in_loop is None or not quotas.is_enabled:
        return {}
    managers = {"Produce": quotas.produce, "Fetch": quotas.fetch, "Request": quotas.request}
    found: dict[str, list[QuotaUse]] = {}
    done = threading.Event()

    def read() -> None:
        now_ms = services.clock.now_ms()
        for name, manager in managers.items():
            if uses := manager.uses(now_ms):
                found[name] = uses
        done.set()

    run_in_loop(read)
    return found if done.wait(_PATIENCE_S) else {}
