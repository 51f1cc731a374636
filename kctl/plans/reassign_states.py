"""How far reassignments are, seen beside the plan they came from. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from broker.model import TopicPartition
from kctl.admin.reassignments import Moving
from kctl.plans.reassign_draft import Assignment
from kctl.tables import Column

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("wanted"),
    Column("status"),
]


class Status(StrEnum):
    """What has become of one partition of a plan."""

    COMPLETED = "completed"
    IN_PROGRESS = "in progress"
    OTHER_REPLICAS = "other replicas"
    """Nothing is moving, and the replicas are not those of the plan."""
    NO_PARTITION = "no such partition"


@dataclass(frozen=True)
class PartitionState:
    """One partition: what it has, what the plan wants."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    wanted: tuple[int, ...]
    status: Status

    def row(self) -> dict[str, object]:
        """The state as a row of COLUMNS."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "replicas": list(self.replicas),
            "wanted": list(self.wanted),
            "status": self.status,
        }


def states_of(wanted: Assignment, moving: Moving, current: Assignment) -> list[PartitionState]:
    """The state of every partition of a plan, in order."""
    return [_state(tp, tuple(wanted[tp]), moving, current) for tp in sorted(wanted)]


def _state(
    partition: TopicPartition, wanted: tuple[int, ...], moving: Moving, current: Assignment
) -> PartitionState:
    if partition in moving:
        replicas = moving[partition].replicas
        return PartitionState(partition, replicas, wanted, Status.IN_PROGRESS)
    if partition not in current:
        return PartitionState(partition, (), wanted, Status.NO_PARTITION)
    replicas = tuple(current[partition])
    status = Status.COMPLETED if replicas == wanted else Status.OTHER_REPLICAS
    return PartitionState(partition, replicas, wanted, status)


def all_completed(states: Iterable[PartitionState]) -> bool:
    """Whether the plan has been carried out."""
    return all(state.status is Status.COMPLETED for state in states)
