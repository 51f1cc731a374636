"""Checks and placement of new topics and partitions: pure, in Kafka's order and Kafka's words."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from broker.assignment import Assignment, assign_replicas
from broker.errors import ApiError, ErrorCode
from broker.topic_names import collisions, name_problem

BROKER_DEFAULT: Final = -1
"""A number of partitions or replicas that is left to the broker (KIP-464)."""


def check_absent(name: str, existing: Collection[str]) -> None:
    """Raise if there is such a topic; Kafka looks for this before anything else."""
    if name in existing:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def check_name(name: str, existing: Collection[str]) -> None:
    """Raise unless a new topic may have this name."""
    if problem := name_problem(name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if colliding := collisions(name, existing):
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
        )


def place_new_topic(
    brokers: Mapping[int, str | None], num_partitions: int, replication_factor: int
) -> Assignment:
    """Replicas for a new topic, spread over the live brokers (id → rack)."""
    if num_partitions <= 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    return _assign(brokers, num_partitions, replication_factor, first_partition=0)


def check_manual_assignment(manual: Mapping[int, Sequence[int]]) -> Assignment:
    """The replicas that a request lists by partition; partitions are 0 to n-1, replicas differ.

    Whether there are such brokers is not asked: they may come later.
    """
    if len({len(replicas) for replicas in manual.values()}) > 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All partitions should have the same number of replicas",
        )
    if any(len(set(replicas)) != len(replicas) for replicas in manual.values()):
        listed = ", ".join(f"{index} -> {as_list(manual[index])}" for index in sorted(manual))
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Duplicate replica assignment found: HashMap({listed})",
        )
    if sorted(manual) != list(range(len(manual))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    if not manual[0]:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition needs at least one replica."
        )
    return [tuple(manual[index]) for index in range(len(manual))]


def as_list(replicas: Iterable[int]) -> str:
    """Broker ids as Kafka's messages show them, which are printed by Scala."""
    return f"ArrayBuffer({', '.join(map(str, replicas))})"


def place_more_partitions(
    brokers: Mapping[int, str | None],
    current: Assignment,
    count: int,
    manual: Sequence[Sequence[int]] | None,
) -> Assignment:
    """Replicas for partitions `len(current)` to `count` - 1; those that are there stay."""
    added = count - len(current)
    if added < 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {len(current)} partitions, which is higher than the requested "
            f"{count}.",
        )
    if added == 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {len(current)} partitions."
        )
    replication_factor = len(current[0])
    if manual is None:
        return _assign(brokers, added, replication_factor, first_partition=len(current))
    _check_manual_partitions(brokers, manual, added, current)
    return [tuple(replicas) for replicas in manual]


def _check_manual_partitions(
    brokers: Mapping[int, str | None],
    manual: Sequence[Sequence[int]],
    added: int,
    current: Assignment,
) -> None:
    first_partition, replication_factor = len(current), len(current[0])
    unknown = {replica for replicas in manual for replica in replicas} - set(brokers)
    if unknown:
        listed = ", ".join(map(str, sorted(unknown)))
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unknown broker(s) in replica assignment: {listed}.",
        )
    if len(manual) != added:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Increasing the number of partitions by {added} but {len(manual)} assignments "
            "provided.",
        )
    for partition, replicas in enumerate(manual, first_partition):
        if not replicas:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Cannot have replication factor of 0 for partition id {partition}.",
            )
        if len(set(replicas)) != len(replicas):
            listed = ", ".join(map(str, replicas))
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Duplicate brokers not allowed in replica assignment: {listed} for partition id "
                f"{partition}.",
            )
    _check_same_replication_factor(manual, first_partition, replication_factor)


def _check_same_replication_factor(
    manual: Sequence[Sequence[int]], first_partition: int, replication_factor: int
) -> None:
    wrong = {
        partition: len(replicas)
        for partition, replicas in enumerate(manual, first_partition)
        if len(replicas) != replication_factor
    }
    if wrong:
        partitions, factors = (", ".join(map(str, ids)) for ids in (wrong, wrong.values()))
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Inconsistent replication factor between partitions, partition 0 has "
            f"{replication_factor} while partitions [{partitions}] have replication factors "
            f"[{factors}], respectively.",
        )


def _assign(
    brokers: Mapping[int, str | None], count: int, replication_factor: int, first_partition: int
) -> Assignment:
    try:
        return assign_replicas(brokers, count, replication_factor, first_partition=first_partition)
    except ValueError as error:
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from error
