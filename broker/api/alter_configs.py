"""Answers AlterConfigs: settings that replace all that were there. Deprecated since KIP-339."""

from broker.api.config_changes import Change, make_changes
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Replace the settings of each resource; loggers cannot be changed this way."""
    changes = [_change(resource) for resource in request.resources]
    outcomes = await make_changes(changes, context.services, validate_only=request.validate_only)
    return AlterConfigsResponse(
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
    settings = {config.name: config.value or "" for config in resource.configs}
    return Change(
        resource.resource_type,
        resource.resource_name,
        keys=[config.name for config in resource.configs],
        nulls=[config.name for config in resource.configs if config.value is None],
        result=lambda current, known: settings,
        levels=None,
    )


def error_response(request: AlterConfigsRequest, code: ErrorCode) -> AlterConfigsResponse:
    """The error on every resource; there is no other place for it."""
    return AlterConfigsResponse(
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
