"""Answers IncrementalAlterConfigs (KIP-339): settings set, deleted, appended to, subtracted from.

Levels of the broker's loggers are changed this way too (KIP-412).
"""

from collections.abc import Mapping

from broker.api.config_changes import Change, ResourceType, make_changes
from broker.api.context import RequestContext
from broker.config.alterations import Alteration, Operation, altered
from broker.config.definitions import Setting
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Change the settings of each resource; what is not named stays as it is."""
    changes = [_change(resource) for resource in request.resources]
    outcomes = await make_changes(changes, context.services, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, (code, message) in zip(request.resources, outcomes, strict=True)
        ]
    )


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
        # Of topics and loggers Kafka does not expect it, which is then its own fault.
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        if resource.resource_type == ResourceType.BROKER:
            code = ErrorCode.INVALID_REQUEST
        raise ApiError(code, f"Unknown operations type {number}") from None


def error_response(
    request: IncrementalAlterConfigsRequest, code: ErrorCode
) -> IncrementalAlterConfigsResponse:
    """The error on every resource; there is no other place for it."""
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )
