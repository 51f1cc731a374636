"""Handle AlterConfigs (KIP-133): replace all configs of a resource. Deprecated since KIP-339.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible

Deliberately missing: levels of loggers, which only IncrementalAlterConfigs can change, as in Kafka.
"""

from broker.api.config_changes import Change, Outcome, make_changes, responses
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Replace the configs of each resource."""
    changes = [_change(resource) for resource in request.resources]
    outcomes = await make_changes(changes, context, validate_only=request.validate_only)
    return AlterConfigsResponse(responses=responses(request.resources, outcomes))


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
    failed: list[Outcome] = [(code, None)] * len(request.resources)
    return AlterConfigsResponse(responses=responses(request.resources, failed))
