"""PRODUCER_FENCED for clients that know it, for those before what they know instead (KIP-588)."""

from broker.errors import ErrorCode


def fencing_error(code: ErrorCode, version: int, *, since: int) -> ErrorCode:
    """`code` as a request of this version may be answered; PRODUCER_FENCED came with `since`."""
    if code == ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
