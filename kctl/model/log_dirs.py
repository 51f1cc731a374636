"""Log directories and the replicas in them."""

from dataclasses import dataclass

from broker.errors import ErrorCode
from broker.model import TopicPartition


@dataclass(frozen=True)
class Replica:
    """One replica in a directory."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    """Lag behind the high watermark, or behind the replica that this future replica will replace.
    """
    is_future: bool
    """Whether it is being copied from another directory of the same broker."""


@dataclass(frozen=True)
class LogDir:
    """One log directory of a broker; replicas in the order of the response."""

    broker_id: int
    path: str
    error: ErrorCode
    total_bytes: int | None
    usable_bytes: int | None
    replicas: tuple[Replica, ...]


@dataclass(frozen=True)
class DirectoryMove:
    """A replica that moves to another directory of its broker."""

    partition: TopicPartition
    broker: int
    source: str
    target: str
    size_bytes: int
