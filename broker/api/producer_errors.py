"""PRODUCER_FENCED for clients that know it, INVALID_PRODUCER_EPOCH for older ones (KIP-588)."""

from broker.errors import ErrorCode


def fencing_error(code: ErrorCode, version: int, *, since: int) -> ErrorCode:
    """The code for a client of this version; PRODUCER_FENCED exists from version `since` on."""
    if code == ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
