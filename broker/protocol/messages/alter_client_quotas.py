"""Change client quotas (KIP-546).

Versions:
    v1 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class EntityData(Struct):
    entity_type: str = wire("string")
    entity_name: str | None = wire("string", nullable=0)


class OpData(Struct):
    key: str = wire("string")
    value: float = wire("float64")
    remove: bool = wire("bool")


class RequestEntryData(Struct):
    entity: list[EntityData] = wire([EntityData])
    ops: list[OpData] = wire([OpData])


class AlterClientQuotasRequest(
    Request["AlterClientQuotasResponse"], api_key=49, versions=(0, 1), flexible=1
):
    """Entities and their new quotas."""

    entries: list[RequestEntryData] = wire([RequestEntryData])
    validate_only: bool = wire("bool")


class ResponseEntryData(Struct):
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    entity: list[EntityData] = wire([EntityData])


class AlterClientQuotasResponse(Response, versions=(0, 1), flexible=1):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    entries: list[ResponseEntryData] = wire([ResponseEntryData])
