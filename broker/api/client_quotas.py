"""Client quotas as DescribeClientQuotas and AlterClientQuotas share them (KIP-546).

A quota belongs to an entity: a user, a client id, both together, or an IP address, where each may
be the default for all that have no quota of their own. They are stored in the znodes of
`broker.metadata.client_configs`, as Kafka stores them, so that brokers of both kinds see them.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.java_strings import java_double
from broker.metadata.client_configs import ClientConfigStore
from broker.metadata.znodes.configs import DEFAULT_ENTITY, desanitize, sanitize
from broker.security.scram import ScramMechanism


class EntityType(StrEnum):
    """The parts that an entity is composed of, by their names in the protocol."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


Entity = Mapping[str, str | None]
"""Names by entity type; None stands for the default entity."""

Quotas = Mapping[str, float]


class _QuotaType(Enum):
    """The types of quota values, by their names in Kafka's messages."""

    LONG = 2**63 - 1
    INT = 2**31 - 1
    DOUBLE = None


_CLIENT_QUOTAS: Final = {
    "producer_byte_rate": _QuotaType.LONG,
    "consumer_byte_rate": _QuotaType.LONG,
    "request_percentage": _QuotaType.DOUBLE,
    "controller_mutation_rate": _QuotaType.DOUBLE,
}
_IP_QUOTAS: Final = {"connection_creation_rate": _QuotaType.INT}

_EPSILON: Final = 1e-6
"""How far a value may be from a whole number where the quota is one."""


def node_of(entity: Entity) -> str:
    """The path of an entity below /config; ApiError if there cannot be such an entity."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in EntityType.__members__.values():
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    nodes = {kind: _node_name(name) for kind, name in entity.items()}
    user, client_id, ip = (nodes.get(kind) for kind in EntityType)
    if ip is not None:
        if len(nodes) > 1:
            raise _invalid(
                "Invalid quota entity combination, "
                "IP entity should not be used with user/client ID entity."
            )
        return f"ips/{ip}"
    if user is None:
        return f"clients/{client_id}"
    return f"users/{user}" if client_id is None else f"users/{user}/clients/{client_id}"


def _node_name(name: str | None) -> str:
    return DEFAULT_ENTITY if name is None else sanitize(name)


def _name(node_name: str) -> str | None:
    return None if node_name == DEFAULT_ENTITY else desanitize(node_name)


def quota_text(entity: Entity, key: str, value: float) -> str:
    """A quota's value as it is stored; ApiError for keys and values that the entity cannot have."""
    allowed = _IP_QUOTAS if EntityType.IP in entity else _CLIENT_QUOTAS
    quota_type = allowed.get(key)
    if quota_type is _QuotaType.DOUBLE:
        return java_double(value)
    if quota_type is not None:
        return str(_whole_number(key, value, quota_type))
    if EntityType.USER in entity and key in ScramMechanism.__members__.values():
        # Kafka finds the key among those of users and then does not know its type.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    raise _invalid(f"Invalid configuration key {key}")


def _whole_number(key: str, value: float, quota_type: _QuotaType) -> int:
    """The number as Java converts it: cut off towards zero, within the type's range, NaN is 0."""
    largest = quota_type.value
    bounded = 0.0 if value != value else max(-largest - 1, min(value + _EPSILON, largest))
    number = int(bounded)
    if abs(number - value) > _EPSILON:
        raise _invalid(f"Configuration {key} must be a {quota_type.name} value")
    return number


async def stored_quotas(store: ClientConfigStore) -> list[tuple[Entity, Quotas]]:
    """All entities that have quotas, with their quotas."""
    users = await store.read_all("users")
    found: list[tuple[Entity, dict[str, str]]] = [
        ({EntityType.USER: _name(node)}, config) for node, config in users.items()
    ]
    for user in users:
        clients = await store.read_all(f"users/{user}/clients")
        found += (
            ({EntityType.USER: _name(user), EntityType.CLIENT_ID: _name(node)}, config)
            for node, config in clients.items()
        )
    for kind, parent in ((EntityType.CLIENT_ID, "clients"), (EntityType.IP, "ips")):
        configs = await store.read_all(parent)
        found += (({kind: _name(node)}, config) for node, config in configs.items())
    return [(entity, quotas) for entity, config in found if (quotas := _quotas(entity, config))]


def _quotas(entity: Entity, config: Mapping[str, str]) -> Quotas:
    """The quotas in a config; users have credentials there too."""
    allowed = _IP_QUOTAS if EntityType.IP in entity else _CLIENT_QUOTAS
    return {key: float(text) for key, text in config.items() if key in allowed}


def message_of(error: ApiError) -> str | None:
    """The message of an error in a response; Kafka sends none with unexpected errors."""
    return None if error.code is ErrorCode.UNKNOWN_SERVER_ERROR else error.message


def _invalid(problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, problem)
