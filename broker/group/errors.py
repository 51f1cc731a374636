"""Errors of a failed append, translated into those that group members expect."""

from typing import Final

from broker.errors import ErrorCode
from broker.replica.coordinator_topic import APPEND_ERRORS

_TOO_LARGE: Final = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_FETCH_SIZE,
)

_OF_GROUP: Final = {
    **APPEND_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
}

_OF_COMMIT: Final = {
    **APPEND_ERRORS,
    # A transaction that could not be verified: old clients retry this code without looking for
    # the coordinator first.
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
}


def group_error(code: ErrorCode) -> ErrorCode:
    """The error for members when a group could not be stored."""
    return _OF_GROUP.get(code, code)


def commit_error(code: ErrorCode) -> ErrorCode:
    """The error for clients when offsets could not be committed."""
    return _OF_COMMIT.get(code, code)
