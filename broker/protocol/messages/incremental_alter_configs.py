"""Set, delete, append to and subtract from configurations (KIP-339).

Versions:
    v1 flexible
"""

from broker.protocol.messages.alter_configs import AlterConfigsResourceResponse
from broker.protocol.schema import Request, Response, Struct, wire


class AlterableConfig(Struct):
    name: str = wire("string")
    config_operation: int = wire("int8")
    value: str | None = wire("string", nullable=0)


class AlterConfigsResource(Struct):
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    configs: list[AlterableConfig] = wire([AlterableConfig])


class IncrementalAlterConfigsRequest(
    Request["IncrementalAlterConfigsResponse"], api_key=44, versions=(0, 1), flexible=1
):
    """Changes to each resource."""

    resources: list[AlterConfigsResource] = wire([AlterConfigsResource])
    validate_only: bool = wire("bool")


class IncrementalAlterConfigsResponse(Response, versions=(0, 1), flexible=1):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    responses: list[AlterConfigsResourceResponse] = wire([AlterConfigsResourceResponse])
