"""One record on its way out of a topic or into one."""

from dataclasses import dataclass

Headers = tuple[tuple[str, bytes | None], ...]
"""In the order of the record; a name may come more than once."""

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
NO_TIMESTAMP_TYPE = "NoTimestampType"


@dataclass(frozen=True)
class TopicRecord:
    """A record with its place; a null key or value is None, which is not the same as empty.

    On the way in, a place or timestamp that is None is left to the producer and the broker.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    timestamp_type: str = CREATE_TIME
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
