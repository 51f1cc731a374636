"""Commit or abort a transaction (KIP-98).

Versions:
    v3 flexible
    v4 TRANSACTION_ABORTABLE (KIP-890)
"""

from broker.protocol.schema import Request, Response, wire


class EndTxnRequest(Request["EndTxnResponse"], api_key=26, versions=(0, 4), flexible=3):
    """The error."""

    transactional_id: str = wire("string")
    producer_id: int = wire("int64")
    producer_epoch: int = wire("int16")
    committed: bool = wire("bool")


class EndTxnResponse(Response, versions=(0, 4), flexible=3):
    """The error; markers are written after the response."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    producer_id: int = wire("int64", since=5, default=-1, ignorable=True)
    producer_epoch: int = wire("int16", since=5, default=-1, ignorable=True)
