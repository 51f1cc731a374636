"""Which client quota applies: the most specific entity that has the quota decides.

    users/U/clients/C, users/U/clients/<default>, users/U,
    users/<default>/clients/C, users/<default>/clients/<default>, users/<default>,
    clients/C, clients/<default>

The order is that of Kafka's DefaultQuotaCallback; it applies to each quota separately.
"""

from collections.abc import Iterable, Mapping

from kctl.model.quotas import (
    CLIENT_QUOTAS,
    IP_QUOTAS,
    EntityPart,
    PartType,
    QuotaEntity,
    QuotaEntry,
    ResolvedQuota,
    entity_of,
)


def resolve(
    entries: Iterable[QuotaEntry], user: str | None, client: str | None, ip: str | None = None
) -> list[ResolvedQuota]:
    """The quotas of a client with this user and client id; of an address with `ip`.

    Without a user, as for clients of a listener without authentication, the user is ANONYMOUS.
    """
    values = {entry.entity: entry.values for entry in entries}
    found = []
    if user is not None or client is not None:
        levels = _client_levels(user or "ANONYMOUS", client or "")
        found += [_resolved(quota, unit, levels, values) for quota, unit in CLIENT_QUOTAS.items()]
    if ip is not None:
        addresses = [
            (entity_of(EntityPart(PartType.IP, name)), "all clients of the address")
            for name in (ip, None)
        ]
        found += [_resolved(quota, unit, addresses, values) for quota, unit in IP_QUOTAS.items()]
    return found


Level = tuple[QuotaEntity, str]
"""An entity, and the clients that share its quota."""


def _client_levels(user: str, client: str) -> list[Level]:
    """The entities that apply, the most specific first."""
    alone, of_user = "this client id of this user", "all clients of this user"
    everywhere = "this client id of all users"
    users = [EntityPart(PartType.USER, name) for name in (user, None)]
    clients = [EntityPart(PartType.CLIENT, name) for name in (client, None)]
    levels = []
    for part in users:
        levels += [(entity_of(part, one), alone) for one in clients]
        levels.append((entity_of(part), of_user))
    return [*levels, *((entity_of(one), everywhere) for one in clients)]


def _resolved(
    quota: str,
    unit: str,
    levels: Iterable[Level],
    values: Mapping[QuotaEntity, Mapping[str, float]],
) -> ResolvedQuota:
    present = [
        (entity, values[entity][quota], shared)
        for entity, shared in levels
        if quota in values.get(entity, {})
    ]
    if not present:
        return ResolvedQuota(quota, unit, None, None, "")
    (entity, value, shared), *rest = present
    overridden = tuple((other, number) for other, number, _ in rest)
    return ResolvedQuota(quota, unit, value, entity, shared, overridden)
