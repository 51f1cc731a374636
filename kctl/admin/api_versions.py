"""Which requests, and which versions of them, the brokers understand."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from broker.net.client import Client
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import request_class
from kctl.admin.cluster import Broker

_DECLARED = frozenset(map(int, ApiKey))


@dataclass(frozen=True)
class ApiRange:
    """The versions of one API that a broker serves."""

    key: int
    min_version: int
    max_version: int

    @property
    def name(self) -> str | None:
        """Kafka's name of the API; None for one that kctl does not know."""
        return ApiKey(self.key).display_name if self.key in _DECLARED else None

    @property
    def used_version(self) -> int | None:
        """The version that kctl and this broker speak with each other; None if there is none."""
        if self.name is None or newest_declared(self.key) < self.min_version:
            return None
        return min(newest_declared(self.key), self.max_version)


def newest_declared(api_key: int) -> int:
    """The highest version of an API that we can speak; all of them go down to Kafka's lowest."""
    return request_class(api_key).versions[1]


async def api_versions_of(client: Client, brokers: Sequence[Broker]) -> list[list[ApiRange]]:
    """What each broker serves, by API key, in the order of `brokers`; all are asked at once."""
    return await asyncio.gather(*(_ask_broker(client, broker.id) for broker in brokers))


async def _ask_broker(client: Client, broker_id: int) -> list[ApiRange]:
    versions = await client.versions_of(broker_id)
    return [ApiRange(key, *versions[key]) for key in sorted(versions)]
