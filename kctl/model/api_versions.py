"""Versions of Kafka's APIs that a broker supports."""

from dataclasses import dataclass

from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import request_class

_DECLARED = frozenset(map(int, ApiKey))


@dataclass(frozen=True)
class ApiRange:
    """The versions of one API that a broker supports."""

    key: int
    min_version: int
    max_version: int

    @property
    def name(self) -> str | None:
        """Kafka's name of the API; None if kctl does not know it."""
        return ApiKey(self.key).display_name if self.key in _DECLARED else None

    @property
    def used_version(self) -> int | None:
        """The version that kctl uses with this broker; None if they have none in common."""
        if self.name is None or newest_declared(self.key) < self.min_version:
            return None
        return min(newest_declared(self.key), self.max_version)


def newest_declared(api_key: int) -> int:
    """The highest version of an API that kctl supports; it supports all lower ones."""
    return request_class(api_key).versions[1]
