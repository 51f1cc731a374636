"""Read client quotas (KIP-546).

Versions:
    v1 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class ComponentData(Struct):
    entity_type: str = wire("string")
    match_type: int = wire("int8")
    match: str | None = wire("string", nullable=0)


class DescribeClientQuotasRequest(
    Request["DescribeClientQuotasResponse"], api_key=48, versions=(0, 1), flexible=1
):
    """A filter of entities."""

    components: list[ComponentData] = wire([ComponentData])
    strict: bool = wire("bool")


class EntityData(Struct):
    entity_type: str = wire("string")
    entity_name: str | None = wire("string", nullable=0)


class ValueData(Struct):
    key: str = wire("string")
    value: float = wire("float64")


class EntryData(Struct):
    entity: list[EntityData] = wire([EntityData])
    values: list[ValueData] = wire([ValueData])


class DescribeClientQuotasResponse(Response, versions=(0, 1), flexible=1):
    """The quotas that match."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    entries: list[EntryData] | None = wire([EntryData], nullable=0)
