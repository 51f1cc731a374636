"""Replicas on their way to another directory of their broker. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from broker.model import TopicPartition
from kctl.admin.log_dirs import LogDir
from kctl.plans.reassign_files import ReplicaPlace


class MoveState(StrEnum):
    """How far one is."""

    COMPLETED = "completed"
    IN_PROGRESS = "in progress"
    ELSEWHERE = "to another directory"
    """It is on its way, but not to where the plan wants it."""
    CANCELLED = "not moving"
    MISSING = "no such replica"

    @property
    def is_active(self) -> bool:
        """Whether bytes are being copied."""
        return self in (MoveState.IN_PROGRESS, MoveState.ELSEWHERE)


@dataclass(frozen=True)
class LogDirMove:
    """One replica that a plan wants in a certain directory."""

    partition: TopicPartition
    broker: int
    target: str
    current: str | None
    future: str | None

    @property
    def state(self) -> MoveState:
        """How far it is."""
        if self.current is None:
            return MoveState.MISSING
        if self.future is not None:
            same = self.future == self.target
            return MoveState.IN_PROGRESS if same else MoveState.ELSEWHERE
        return MoveState.COMPLETED if self.current == self.target else MoveState.CANCELLED


def log_dir_moves(
    wanted: Mapping[ReplicaPlace, str], log_dirs: Iterable[LogDir]
) -> list[LogDirMove]:
    """The moves that a plan wants, by broker and partition."""
    current: dict[ReplicaPlace, str] = {}
    future: dict[ReplicaPlace, str] = {}
    for log_dir in log_dirs:
        for replica in log_dir.replicas:
            places = future if replica.is_future else current
            places[replica.partition, log_dir.broker_id] = log_dir.path
    ordered = sorted(wanted, key=lambda place: (place[1], place[0]))
    return [
        LogDirMove(place[0], place[1], wanted[place], current.get(place), future.get(place))
        for place in ordered
    ]
