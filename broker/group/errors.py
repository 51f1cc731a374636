"""What a failed append means to a member: the log's errors in the coordinator's words."""

from collections.abc import Mapping
from typing import Final

from broker.errors import ErrorCode

_LOST_COORDINATOR: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}

_TOO_LARGE: Final = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_FETCH_SIZE,
)

_OF_GROUP: Final = {
    **_LOST_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
}

_OF_COMMIT: Final = {
    **_LOST_COORDINATOR,
    # Of a transaction that could not be verified: makes old clients try again, without looking
    # for the coordinator first.
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
}


def group_error(code: ErrorCode) -> ErrorCode:
    """Why a group could not be stored."""
    return _OF_GROUP.get(code, code)


def commit_error(code: ErrorCode) -> ErrorCode:
    """Why offsets could not be committed."""
    return _OF_COMMIT.get(code, code)
