"""Reassignments: planned, in progress, and how far each has come."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from broker.model import TopicPartition

ReplicaSizes = Mapping[tuple[TopicPartition, int], int]
"""Bytes of each replica, by partition and broker id."""


@dataclass(frozen=True)
class Reassignment:
    """A reassignment in progress."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    """All current replicas, including those being added and those being removed."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after completion."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def sources(self) -> tuple[int, ...]:
        """The replicas that existed before the reassignment and hold the data."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


Reassignments = Mapping[TopicPartition, Reassignment]
"""The reassignments in progress, by partition."""


@dataclass(frozen=True)
class PartitionChange:
    """The planned change of one partition's replicas."""

    partition: TopicPartition
    now: tuple[int, ...]
    then: tuple[int, ...]
    size_bytes: int
    """Bytes of one replica."""

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that get a replica; each copies `size_bytes`."""
        return tuple(broker for broker in self.then if broker not in self.now)

    @property
    def removing(self) -> tuple[int, ...]:
        """Brokers that lose their replica."""
        return tuple(broker for broker in self.now if broker not in self.then)

    @property
    def move_bytes(self) -> int:
        """Bytes to copy."""
        return len(self.adding) * self.size_bytes


@dataclass(frozen=True)
class BrokerLoad:
    """Replicas, leaders and bytes of one broker before and after a reassignment."""

    broker: int
    rack: str | None
    replicas_now: int
    replicas_then: int
    leaders_now: int
    leaders_then: int
    bytes_now: int
    bytes_then: int
    bytes_in: int
    """Bytes that the broker copies from others."""


@dataclass(frozen=True)
class ReassignmentCost:
    """Totals of a reassignment.

    A skew is the load of the most loaded broker divided by the mean; 1.0 is even.
    """

    partitions: int
    replicas_added: int
    replicas_removed: int
    leaders_changed: int
    move_bytes: int
    replica_skew_now: float
    replica_skew_then: float
    leader_skew_now: float
    leader_skew_then: float
    byte_skew_now: float
    byte_skew_then: float


class ReassignmentStatus(StrEnum):
    """State of one partition of a plan."""

    COMPLETED = "completed"
    IN_PROGRESS = "in progress"
    OTHER_REPLICAS = "other replicas"
    """No reassignment is in progress, and the replicas differ from the plan."""
    NO_PARTITION = "no such partition"


@dataclass(frozen=True)
class PartitionState:
    """One partition of a plan: its current and its planned replicas."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    wanted: tuple[int, ...]
    status: ReassignmentStatus


class LogDirMoveState(StrEnum):
    """State of a move between log directories."""

    COMPLETED = "completed"
    IN_PROGRESS = "in progress"
    ELSEWHERE = "to another directory"
    """The replica is moving, but not to the directory in the plan."""
    CANCELLED = "not moving"
    MISSING = "no such replica"

    @property
    def is_active(self) -> bool:
        """Whether bytes are being copied."""
        return self in (LogDirMoveState.IN_PROGRESS, LogDirMoveState.ELSEWHERE)


@dataclass(frozen=True)
class LogDirMove:
    """A replica for which a plan names a log directory."""

    partition: TopicPartition
    broker: int
    target: str
    current: str | None
    """Directory of the replica; None if the broker has no such replica."""
    future: str | None
    """Directory that the replica is being copied to; None if it is not moving."""

    @property
    def state(self) -> LogDirMoveState:
        """How far the move has come."""
        if self.current is None:
            return LogDirMoveState.MISSING
        if self.future is not None:
            same = self.future == self.target
            return LogDirMoveState.IN_PROGRESS if same else LogDirMoveState.ELSEWHERE
        is_there = self.current == self.target
        return LogDirMoveState.COMPLETED if is_there else LogDirMoveState.CANCELLED


@dataclass(frozen=True)
class Progress:
    """Progress of a run at one moment."""

    done_partitions: int
    all_partitions: int
    done_bytes: int
    all_bytes: int
    bytes_per_s: float | None
    """None until two samples exist."""

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining time; None if it is unknown or nothing remains."""
        if not self.bytes_per_s or self.done_bytes >= self.all_bytes:
            return None
        return (self.all_bytes - self.done_bytes) / self.bytes_per_s


@dataclass(frozen=True)
class BehindBroker:
    """A broker whose added replicas are not complete."""

    broker: int
    state: str
    """`is up`, `is down` or `does not answer`."""
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class Stall:
    """No byte was copied for a while."""

    seconds: float
    behind: tuple[BehindBroker, ...]
