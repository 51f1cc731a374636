"""Client quotas: the entities that have them, and their values."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

DEFAULT_NAME: Final = "<default>"
"""How the default entity is shown; it applies to all that have no quota of their own."""

CLIENT_QUOTAS: Final = {
    "producer_byte_rate": "bytes per second and broker",
    "consumer_byte_rate": "bytes per second and broker",
    "request_percentage": "percent of one request thread per broker",
    "controller_mutation_rate": "partitions created or deleted per second",
}
IP_QUOTAS: Final = {"connection_creation_rate": "connections per second and broker"}


class PartType(StrEnum):
    """The parts of an entity, by their names in the protocol."""

    USER = "user"
    CLIENT = "client-id"
    IP = "ip"

    @property
    def word(self) -> str:
        """As in `client:c1`."""
        return "client" if self is PartType.CLIENT else self.value


@dataclass(frozen=True)
class EntityPart:
    """One part of an entity; `name` is None for the default."""

    type: PartType
    name: str | None

    def __str__(self) -> str:
        return f"{self.type.word}:{DEFAULT_NAME if self.name is None else self.name}"


@dataclass(frozen=True)
class QuotaEntity:
    """A user, a client id, both together, or an IP address."""

    parts: tuple[EntityPart, ...]
    """The user before the client id."""

    def __str__(self) -> str:
        return " ".join(map(str, self.parts))


def entity_of(*parts: EntityPart) -> QuotaEntity:
    """The entity with these parts, in order."""
    order = list(PartType)
    return QuotaEntity(tuple(sorted(parts, key=lambda part: order.index(part.type))))


@dataclass(frozen=True)
class QuotaEntry:
    """The quotas of one entity."""

    entity: QuotaEntity
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ResolvedQuota:
    """Which value of one quota applies to a client."""

    quota: str
    unit: str
    value: float | None
    """None: no quota, unlimited."""
    entity: QuotaEntity | None
    shared_by: str
    """The clients that share the quota."""
    overridden: tuple[tuple[QuotaEntity, float], ...] = ()
    """Other values that would apply if this one were deleted, in order of precedence."""
