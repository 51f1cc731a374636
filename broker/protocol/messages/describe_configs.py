"""Read configurations (KIP-133).

Versions:
    v1 sources and synonyms (KIP-226)
    v3 types and documentation (KIP-569)
    v4 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DescribeConfigsResource(Struct):
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    configuration_keys: list[str] | None = wire("[]string", nullable=0)


class DescribeConfigsRequest(
    Request["DescribeConfigsResponse"], api_key=32, versions=(0, 4), flexible=4
):
    """Resources, and the keys to describe; null for all keys."""

    resources: list[DescribeConfigsResource] = wire([DescribeConfigsResource])
    include_synonyms: bool = wire("bool", since=1)
    include_documentation: bool = wire("bool", since=3)


class DescribeConfigsSynonym(Struct):
    name: str = wire("string", since=1)
    value: str | None = wire("string", since=1, nullable=0)
    source: int = wire("int8", since=1)


class DescribeConfigsResourceResult(Struct):
    name: str = wire("string")
    value: str | None = wire("string", nullable=0)
    read_only: bool = wire("bool")
    is_default: bool = wire("bool", until=0)
    config_source: int = wire("int8", since=1, default=-1, ignorable=True)
    is_sensitive: bool = wire("bool")
    synonyms: list[DescribeConfigsSynonym] = wire([DescribeConfigsSynonym], since=1, ignorable=True)
    config_type: int = wire("int8", since=3, ignorable=True)
    documentation: str | None = wire("string", since=3, nullable=0, ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    configs: list[DescribeConfigsResourceResult] = wire([DescribeConfigsResourceResult])


class DescribeConfigsResponse(Response, versions=(0, 4), flexible=4):
    """Values with their sources."""

    throttle_time_ms: int = wire("int32")
    results: list[DescribeConfigsResult] = wire([DescribeConfigsResult])
