"""Records that are produced or consumed."""

from dataclasses import dataclass

Headers = tuple[tuple[str, bytes | None], ...]
"""Headers in order; names may be repeated."""

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
NO_TIMESTAMP_TYPE = "NoTimestampType"


@dataclass(frozen=True)
class TopicRecord:
    """A record and its position; a null key or value is None, unlike an empty one.

    When producing, a partition or timestamp of None is left to the producer and the broker.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    timestamp_type: str = CREATE_TIME
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
