"""Kafka's ReplicaAssignment: pure functions on the replicas of a partition (KIP-455)."""

from collections.abc import Collection, Sequence

from broker.controller.topic_plan import as_list
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.topics import ReplicaAssignment


def check_target(
    target: Sequence[int], current: ReplicaAssignment, live_brokers: Collection[int]
) -> None:
    """Raise unless a partition may be reassigned to these replicas; new ones must be alive."""
    if not target:
        raise _invalid("Empty replica list specified in partition reassignment.")
    if len(set(target)) != len(target):
        raise _invalid(
            f"Duplicate replica ids in partition reassignment replica list: {as_list(target)}"
        )
    if min(target) < 0:
        raise _invalid(f"Invalid broker id in replica list: {as_list(target)}")
    adding = reassign_to(current, target).adding_replicas
    if not set(adding) <= set(live_brokers):
        alive = ", ".join(map(str, sorted(live_brokers)))
        raise _invalid(
            "Replica assignment has brokers that are not alive. Replica list: "
            f"{as_list(adding)}, live broker list: Set({alive})"
        )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def origin_of(assignment: ReplicaAssignment) -> tuple[int, ...]:
    """The replicas before the reassignment in progress."""
    return tuple(r for r in assignment.replicas if r not in assignment.adding_replicas)


def target_of(assignment: ReplicaAssignment) -> tuple[int, ...]:
    """The replicas after the reassignment in progress."""
    return tuple(r for r in assignment.replicas if r not in assignment.removing_replicas)


def reassign_to(current: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
    """The assignment while reassigning from `current` to `target`: both, the target's first."""
    origin = origin_of(current)
    replicas = tuple(dict.fromkeys((*target, *origin)))
    return ReplicaAssignment(
        replicas,
        tuple(replica for replica in replicas if replica not in origin),
        tuple(replica for replica in origin if replica not in target),
    )


def is_reassigned(assignment: ReplicaAssignment) -> bool:
    """Whether a reassignment is in progress."""
    return bool(assignment.adding_replicas or assignment.removing_replicas)


def is_complete(assignment: ReplicaAssignment, isr: Collection[int]) -> bool:
    """Whether no reassignment is in progress, or all target replicas are in the ISR."""
    return not is_reassigned(assignment) or set(target_of(assignment)) <= set(isr)
