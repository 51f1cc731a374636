"""The output of kafka-configs for users, clients and IP addresses: quotas and credentials."""

from collections.abc import Iterator, Sequence

from broker.java_strings import java_double
from kctl.model.quotas import EntityPart, PartType, QuotaEntity, QuotaEntry
from kctl.model.users import Credential
from kctl.views.kafka_text.java_maps import hash_map_order, names_in_map_order
from kctl.views.kafka_text.java_order import string_hash

_TYPE_NAMES = {
    PartType.USER: "user-principal",
    PartType.CLIENT: "client-id",
    PartType.IP: "ip",
}
_DEPRECATED = [
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.",
    "Use --bootstrap-server instead to specify a broker to connect to.",
]


def quota_lines(entries: Sequence[QuotaEntry]) -> Iterator[str]:
    """The quotas of `--describe`, in the order of Java's maps."""
    values = {entry.entity: entry.values for entry in entries}
    for entity in hash_map_order(values, _entity_hash, capacity=len(values)):
        own = values[entity]
        names = names_in_map_order(own, capacity=len(own))
        text = ", ".join(f"{name}={java_double(own[name])}" for name in names)
        yield f"Quota configs for {_entity(entity)} are {text}"


def _entity(entity: QuotaEntity) -> str:
    return ", ".join(
        f"the default {_TYPE_NAMES[part.type]}"
        if part.name is None
        else f"{_TYPE_NAMES[part.type]} '{part.name}'"
        for part in entity.parts
    )


def _entity_hash(entity: QuotaEntity) -> int:
    """ClientQuotaEntity.hashCode: that of a list of one map."""
    entries = sum(
        string_hash(part.type.value) ^ (0 if part.name is None else string_hash(part.name))
        for part in entity.parts
    )
    return 31 + entries


def credential_lines(credentials: Sequence[Credential]) -> Iterator[str]:
    """The credentials of `--describe`, one line per user, in the order of the response."""
    by_user: dict[str, list[Credential]] = {}
    for one in credentials:
        by_user.setdefault(one.user, []).append(one)
    for user, own in by_user.items():
        text = ", ".join(f"{one.mechanism}=iterations={one.iterations}" for one in own)
        yield f"SCRAM credential configs for user-principal '{user}' are {text}"


def quota_completion_line(part: EntityPart) -> str:
    """The line of `--alter`, which names one part of the entity."""
    if part.name is None:
        return f"Completed updating default config for {part.type.word}s in the cluster."
    return f"Completed updating config for {part.type.word} {part.name}."


def user_completion_lines(user: str, *, through_zookeeper: bool) -> list[str]:
    """The lines of `--alter` for SCRAM credentials."""
    if through_zookeeper:
        return [*_DEPRECATED, f"Completed updating config for entity: user-principal '{user}'."]
    return [f"Completed updating config for user {user}."]
