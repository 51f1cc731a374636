"""Ask for a producer id, fencing older producers with the same transactional id (KIP-98).

Versions:
    v2 flexible
    v3 bump the epoch one has (KIP-360)
    v4 PRODUCER_FENCED (KIP-588)
    v5 TRANSACTION_ABORTABLE (KIP-890)
"""

from broker.protocol.schema import Request, Response, wire


class InitProducerIdRequest(
    Request["InitProducerIdResponse"], api_key=22, versions=(0, 5), flexible=2
):
    """The producer; null transactional id if it is only idempotent."""

    transactional_id: str | None = wire("string", nullable=0)
    transaction_timeout_ms: int = wire("int32")
    producer_id: int = wire("int64", since=3, default=-1)
    producer_epoch: int = wire("int16", since=3, default=-1)


class InitProducerIdResponse(Response, versions=(0, 5), flexible=2):
    """The producer id and epoch to use."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    producer_id: int = wire("int64", default=-1)
    producer_epoch: int = wire("int16")
