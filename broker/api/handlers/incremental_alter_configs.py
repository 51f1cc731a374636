"""Handle IncrementalAlterConfigs (KIP-339): set, delete, append to and subtract from configs.

It also changes the levels of the broker's loggers (KIP-412).

Versions:
    v1 flexible

Deliberately missing: configs of client metrics and of groups, which only KRaft clusters have.
"""

from collections.abc import Mapping

from broker.api.config_changes import Change, Outcome, ResourceType, make_changes, responses
from broker.api.context import RequestContext
from broker.config.alterations import Alteration, Operation, altered
from broker.config.definitions import Setting
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Change the configs of each resource; configs that are not named stay."""
    changes = [_change(resource) for resource in request.resources]
    outcomes = await make_changes(changes, context, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(responses=responses(request.resources, outcomes))


def _change(resource: AlterConfigsResource) -> Change:
    def result(current: Mapping[str, str], known: Mapping[str, Setting]) -> dict[str, str]:
        return altered(current, _alterations(resource), known)

    return Change(
        resource.resource_type,
        resource.resource_name,
        keys=[config.name for config in resource.configs],
        nulls=[
            config.name
            for config in resource.configs
            if config.value is None and config.config_operation != Operation.DELETE
        ],
        result=result,
        levels=lambda: _alterations(resource),
    )


def _alterations(resource: AlterConfigsResource) -> list[Alteration]:
    return [
        Alteration(config.name, _operation(resource, config.config_operation), config.value or "")
        for config in resource.configs
    ]


def _operation(resource: AlterConfigsResource, number: int) -> Operation:
    try:
        return Operation(number)
    except ValueError:
        # Kafka fails on it, except for brokers.
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        if resource.resource_type == ResourceType.BROKER:
            code = ErrorCode.INVALID_REQUEST
        raise ApiError(code, f"Unknown operations type {number}") from None


def error_response(
    request: IncrementalAlterConfigsRequest, code: ErrorCode
) -> IncrementalAlterConfigsResponse:
    """The error on every resource; there is no other place for it."""
    failed: list[Outcome] = [(code, None)] * len(request.resources)
    return IncrementalAlterConfigsResponse(responses=responses(request.resources, failed))
