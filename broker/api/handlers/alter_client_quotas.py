"""Handle AlterClientQuotas (KIP-546): set and remove quotas.

Versions:
    v1 flexible

Deliberately missing: nothing.
"""

import asyncio
import socket

from broker.api.authorization import MESSAGES, authorize_cluster
from broker.api.client_quotas import Entity, EntityType, message_of, node_of, quota_text
from broker.api.context import RequestContext, Services
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    ResponseEntryData,
)
from broker.security.acls import AclOperation


async def handle(
    request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    """Alter one entity after the other; a failure concerns only its entity.

    An entity that is named twice is altered twice and reported once, with the last outcome.
    """
    authorize_cluster(context, AclOperation.ALTER_CONFIGS)
    results: dict[frozenset[tuple[str, str | None]], ResponseEntryData] = {}
    for entry in request.entries:
        entity = _entity(entry.entity)
        try:
            await _alter(entity, entry.ops, context.services, request.validate_only)
            result = _result(entity, ErrorCode.NONE, None)
        except ApiError as error:
            result = _result(entity, error.code, message_of(error))
        results[frozenset(entity.items())] = result
    return AlterClientQuotasResponse(entries=list(results.values()))


async def _alter(
    entity: Entity, operations: list[OpData], services: Services, validate_only: bool
) -> None:
    node, store = node_of(entity), services.client_configs
    await _check_address(entity)
    async with store.changing:
        config = await store.read(node)
        for operation in operations:
            if operation.remove:
                config.pop(operation.key, None)
            else:
                config[operation.key] = quota_text(entity, operation.key, operation.value)
        if not validate_only:
            await store.write(node, config)


async def _check_address(entity: Entity) -> None:
    """ApiError if an IP entity is neither an address nor the name of a host."""
    ip = entity.get(EntityType.IP)
    if ip is None:
        return
    try:
        await asyncio.get_running_loop().getaddrinfo(ip, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        problem = f"{ip} is not a valid IP or resolvable host."
        raise ApiError(ErrorCode.INVALID_REQUEST, problem) from error


def _entity(components: list[EntityData]) -> Entity:
    return {component.entity_type: component.entity_name for component in components}


def _result(entity: Entity, code: ErrorCode, message: str | None) -> ResponseEntryData:
    return ResponseEntryData(
        error_code=code,
        error_message=message,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
    )


def error_response(request: AlterClientQuotasRequest, code: ErrorCode) -> AlterClientQuotasResponse:
    """The error on every entity; there is no other place for it."""
    return AlterClientQuotasResponse(
        entries=[
            _result(_entity(entry.entity), code, MESSAGES.get(code)) for entry in request.entries
        ]
    )
