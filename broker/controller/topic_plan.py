"""Validation and assignment of new topics and partitions. Pure.

The order of the checks and the messages are Kafka's, as clients and their tests compare them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from broker.assignment import Assignment, assign_replicas
from broker.errors import ApiError, ErrorCode
from broker.topic_names import collisions, name_problem

BROKER_DEFAULT: Final = -1
"""A number of partitions or replicas that stands for the broker's default (KIP-464)."""


def check_absent(name: str, existing: Collection[str]) -> None:
    """Raise if the topic exists; Kafka checks this before anything else."""
    if name in existing:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def check_name(name: str, existing: Collection[str]) -> None:
    """Raise unless the name is legal and differs from others by more than `.` for `_`."""
    if problem := name_problem(name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if colliding := collisions(name, existing):
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
        )


def check_partition_count(num_new_partitions: int, limit: int) -> None:
    """Raise if a request adds more partitions than `max.partitions.per.request`.

    Must be called before the assignment is computed: a request of 60 bytes can ask for 2^31-1
    partitions. Kafka in ZooKeeper mode has no limit and runs out of memory. KRaft's
    ReplicationControlManager rejects a CreateTopics of more than MAX_PARTITIONS_PER_BATCH (10,000)
    with this code and message, counting all topics of the request and `validate_only` too; we do
    the same, and apply it to CreatePartitions, where KRaft fails later on the number of records.
    """
    if num_new_partitions > limit:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def place_new_topic(
    brokers: Mapping[int, str | None],
    num_partitions: int,
    replication_factor: int,
    max_partitions: int,
) -> Assignment:
    """Assign the replicas of a new topic to the live brokers (id → rack)."""
    check_partition_count(num_partitions, max_partitions)
    if num_partitions <= 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    return _assign(brokers, num_partitions, replication_factor, first_partition=0)


def check_manual_assignment(manual: Mapping[int, Sequence[int]]) -> Assignment:
    """The manual assignment of a request: partitions must be 0 to n-1, replicas distinct.

    Whether the brokers exist is not checked, as in Kafka: they may start later.
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
    """Broker ids as in Kafka's messages, where Scala prints them."""
    return f"ArrayBuffer({', '.join(map(str, replicas))})"


def place_more_partitions(
    brokers: Mapping[int, str | None],
    current: Assignment,
    count: int,
    manual: Sequence[Sequence[int]] | None,
    max_partitions: int,
) -> Assignment:
    """Replicas for partitions `len(current)` to `count` - 1; existing ones keep theirs."""
    added = count - len(current)
    check_partition_count(added, max_partitions)
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
