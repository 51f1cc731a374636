"""Handle DescribeClientQuotas (KIP-546): list the quotas of the entities that match a filter.

Versions:
    v1 flexible

Deliberately missing: nothing.
"""

from collections.abc import Sequence
from enum import IntEnum

from broker.api.authorization import authorize_cluster
from broker.api.client_quotas import Entity, EntityType, message_of, stored_quotas
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from broker.security.acls import AclOperation


class MatchType(IntEnum):
    """How a component of a filter matches an entity's name."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


async def handle(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    """List entities that match every component; a strict filter excludes those with more parts."""
    authorize_cluster(context, AclOperation.DESCRIBE_CONFIGS)
    try:
        _check(request.components)
    except ApiError as error:
        return _failed(error)
    quotas = await stored_quotas(context.services.client_configs)
    return DescribeClientQuotasResponse(
        error_message="",
        entries=[
            EntryData(
                entity=[EntityData(entity_type=t, entity_name=n) for t, n in entity.items()],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in quotas
            if _matches(request, entity)
        ],
    )


def _check(components: Sequence[ComponentData]) -> None:
    """ApiError for filters that Kafka refuses."""
    seen: set[str] = set()
    for component in components:
        is_exact = component.match_type == MatchType.EXACT
        if component.match_type not in MatchType.__members__.values() or (
            is_exact and component.match is None
        ):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    for component in components:
        kind = component.entity_type
        if kind in seen:
            name = kind.removesuffix("-id")
            raise _invalid(f"Duplicate {name} filter component entity type")
        if not kind:
            raise _invalid("Unexpected empty filter component entity type")
        if kind not in EntityType.__members__.values():
            problem = f"Custom entity type '{kind}' not supported"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, problem)
        seen.add(kind)
    if EntityType.IP in seen and len(seen) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component."
        )


def _matches(request: DescribeClientQuotasRequest, entity: Entity) -> bool:
    if request.strict and len(entity) != len(request.components):
        return False
    return all(_matches_component(component, entity) for component in request.components)


def _matches_component(component: ComponentData, entity: Entity) -> bool:
    if component.entity_type not in entity:
        return False
    if component.match_type == MatchType.ANY:
        return True
    is_default = component.match_type == MatchType.DEFAULT
    return entity[component.entity_type] == (None if is_default else component.match)


def _invalid(problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, problem)


def _failed(error: ApiError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=message_of(error), entries=None
    )


def error_response(
    request: DescribeClientQuotasRequest, code: ErrorCode
) -> DescribeClientQuotasResponse:
    """The error, without entries."""
    return DescribeClientQuotasResponse(error_code=code, error_message=None, entries=None)
