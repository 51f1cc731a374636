"""Replace all configs of resources; deprecated in favour of IncrementalAlterConfigs.

Versions:
    v2 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class AlterableConfig(Struct):
    name: str = wire("string")
    value: str | None = wire("string", nullable=0)


class AlterConfigsResource(Struct):
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    configs: list[AlterableConfig] = wire([AlterableConfig])


class AlterConfigsRequest(Request["AlterConfigsResponse"], api_key=33, versions=(0, 2), flexible=2):
    """The complete new configuration of each resource."""

    resources: list[AlterConfigsResource] = wire([AlterConfigsResource])
    validate_only: bool = wire("bool")


class AlterConfigsResourceResponse(Struct):
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")


class AlterConfigsResponse(Response, versions=(0, 2), flexible=2):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    responses: list[AlterConfigsResourceResponse] = wire([AlterConfigsResourceResponse])
