"""Transactions a broker coordinates (KIP-664).

Versions:
    v1 filter by duration (KIP-994)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class ListTransactionsRequest(
    Request["ListTransactionsResponse"], api_key=66, versions=(0, 1), flexible=0
):
    """Filters; empty for all."""

    state_filters: list[str] = wire("[]string")
    producer_id_filters: list[int] = wire("[]int64")
    duration_filter: int = wire("int64", since=1, default=-1)


class TransactionState(Struct):
    transactional_id: str = wire("string")
    producer_id: int = wire("int64")
    transaction_state: str = wire("string")


class ListTransactionsResponse(Response, versions=(0, 1), flexible=0):
    """The transactions."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    unknown_state_filters: list[str] = wire("[]string")
    transaction_states: list[TransactionState] = wire([TransactionState])
