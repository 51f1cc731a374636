"""Change finalized features (KIP-584).

Versions:
    v1 validate only, kinds of upgrade
"""

from broker.protocol.schema import Request, Response, Struct, wire


class FeatureUpdateKey(Struct):
    feature: str = wire("string")
    max_version_level: int = wire("int16")
    allow_downgrade: bool = wire("bool", until=0)
    upgrade_type: int = wire("int8", since=1, default=1)


class UpdateFeaturesRequest(
    Request["UpdateFeaturesResponse"], api_key=57, versions=(0, 1), flexible=0
):
    """Features and their new levels."""

    timeout_ms: int = wire("int32", default=60000)
    feature_updates: list[FeatureUpdateKey] = wire([FeatureUpdateKey])
    validate_only: bool = wire("bool", since=1)


class UpdatableFeatureResult(Struct):
    feature: str = wire("string")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)


class UpdateFeaturesResponse(Response, versions=(0, 1), flexible=0):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    results: list[UpdatableFeatureResult] = wire([UpdatableFeatureResult], until=1)
