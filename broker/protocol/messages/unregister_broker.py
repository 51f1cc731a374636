"""Forget a broker: only a KRaft cluster answers (KIP-500)."""

from broker.protocol.schema import Request, Response, wire


class UnregisterBrokerRequest(
    Request["UnregisterBrokerResponse"], api_key=64, versions=(0, 0), flexible=0
):
    """The broker to unregister."""

    broker_id: int = wire("int32")


class UnregisterBrokerResponse(Response, versions=(0, 0), flexible=0):
    """The error."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
