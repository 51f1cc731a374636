"""Tell the transaction coordinator that a transaction commits a group's offsets (KIP-98).

Versions:
    v3 flexible
    v4 TRANSACTION_ABORTABLE (KIP-890)
"""

from broker.protocol.schema import Request, Response, wire


class AddOffsetsToTxnRequest(
    Request["AddOffsetsToTxnResponse"], api_key=25, versions=(0, 4), flexible=3
):
    """The group whose offsets are added to the transaction."""

    transactional_id: str = wire("string")
    producer_id: int = wire("int64")
    producer_epoch: int = wire("int16")
    group_id: str = wire("string")


class AddOffsetsToTxnResponse(Response, versions=(0, 4), flexible=3):
    """The error."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
