"""The state of each partition of a plan, compared with the cluster."""

from collections.abc import Iterable

from broker.model import TopicPartition
from kctl.model.assignments import Assignment
from kctl.model.reassignments import PartitionState, Reassignments, ReassignmentStatus


def states_of(
    wanted: Assignment, in_progress: Reassignments, current: Assignment
) -> list[PartitionState]:
    """The state of every partition of a plan, sorted by partition."""
    return [_state(tp, tuple(wanted[tp]), in_progress, current) for tp in sorted(wanted)]


def _state(
    partition: TopicPartition,
    wanted: tuple[int, ...],
    in_progress: Reassignments,
    current: Assignment,
) -> PartitionState:
    if partition in in_progress:
        replicas = in_progress[partition].replicas
        return PartitionState(partition, replicas, wanted, ReassignmentStatus.IN_PROGRESS)
    if partition not in current:
        return PartitionState(partition, (), wanted, ReassignmentStatus.NO_PARTITION)
    replicas = tuple(current[partition])
    is_done = replicas == wanted
    status = ReassignmentStatus.COMPLETED if is_done else ReassignmentStatus.OTHER_REPLICAS
    return PartitionState(partition, replicas, wanted, status)


def all_completed(states: Iterable[PartitionState]) -> bool:
    """Whether every partition has the replicas of the plan."""
    return all(state.status is ReassignmentStatus.COMPLETED for state in states)
