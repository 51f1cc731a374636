"""Names of client metrics subscriptions (KIP-714): only a KRaft cluster answers."""

from broker.protocol.schema import Request, Response, Struct, wire


class ListClientMetricsResourcesRequest(
    Request["ListClientMetricsResourcesResponse"], api_key=74, versions=(0, 0), flexible=0
):
    """No fields."""


class ClientMetricsResource(Struct):
    name: str = wire("string")


class ListClientMetricsResourcesResponse(Response, versions=(0, 0), flexible=0):
    """The names."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    client_metrics_resources: list[ClientMetricsResource] = wire([ClientMetricsResource])
