"""Which APIs and versions a broker serves.

Versions:
    v1 throttle time
    v3 flexible; client software (KIP-511), features (KIP-584)
    v4 features with minimum version 0
"""

from broker.protocol.schema import Request, Response, Struct, wire


class ApiVersionsRequest(Request["ApiVersionsResponse"], api_key=18, versions=(0, 4), flexible=3):
    """Name and version of the client software."""

    client_software_name: str = wire("string", since=3, ignorable=True)
    client_software_version: str = wire("string", since=3, ignorable=True)


class ApiVersion(Struct):
    api_key: int = wire("int16")
    min_version: int = wire("int16")
    max_version: int = wire("int16")


class SupportedFeatureKey(Struct):
    name: str = wire("string", since=3)
    min_version: int = wire("int16", since=3)
    max_version: int = wire("int16", since=3)


class FinalizedFeatureKey(Struct):
    name: str = wire("string", since=3)
    max_version_level: int = wire("int16", since=3)
    min_version_level: int = wire("int16", since=3)


class ApiVersionsResponse(Response, versions=(0, 4), flexible=3):
    """One row per API; always sent with response header 0, which every client can read."""

    error_code: int = wire("int16")
    api_keys: list[ApiVersion] = wire([ApiVersion])
    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = wire(
        [SupportedFeatureKey], since=3, tag=0, ignorable=True
    )
    finalized_features_epoch: int = wire("int64", since=3, default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = wire(
        [FinalizedFeatureKey], since=3, tag=2, ignorable=True
    )
    zk_migration_ready: bool = wire("bool", since=3, tag=3, ignorable=True)
