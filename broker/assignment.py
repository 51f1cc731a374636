"""Kafka's assignment of replicas to brokers (AdminUtils.assignReplicasToBrokers).

Leaders are assigned round-robin from a random broker. The other replicas of a partition follow at a
shift that grows by one after each round, so that partitions with the same leader have different
followers. With racks, the brokers are first ordered so that racks alternate, and a rack gets a
second replica of a partition only when every rack has one.
"""

import random
from collections.abc import Mapping, Sequence

Assignment = list[tuple[int, ...]]
"""Replicas of each partition; the first is the preferred leader."""


def assign_replicas(
    brokers: Mapping[int, str | None],
    num_partitions: int,
    replication_factor: int,
    *,
    first_partition: int = 0,
    start_index: int | None = None,
    replica_shift: int | None = None,
) -> Assignment:
    """Assign `num_partitions` new partitions to brokers (id → rack).

    Racks are used only if every broker has one. `first_partition` is the index of the first new
    partition. `start_index` and `replica_shift` are random unless given; with them the result is
    deterministic. ValueError if there are fewer brokers than replicas.
    """
    if replication_factor > len(brokers):
        raise ValueError(
            f"Replication factor: {replication_factor} larger than "
            f"available brokers: {len(brokers)}."
        )
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    ordered = _alternate_racks(racks) if len(racks) == len(brokers) else sorted(brokers)
    count = len(ordered)
    start = random.randrange(count) if start_index is None else start_index  # noqa: S311
    shift = random.randrange(count) if replica_shift is None else replica_shift  # noqa: S311
    assignment: Assignment = []
    for partition in range(first_partition, first_partition + num_partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        if len(racks) == len(brokers):
            assignment.append(_spread(ordered, racks, first, shift, replication_factor))
        else:
            followers = (
                ordered[_follower_index(first, shift, nth, count)]
                for nth in range(replication_factor - 1)
            )
            assignment.append((ordered[first], *followers))
    return assignment


def _follower_index(first: int, shift: int, nth: int, count: int) -> int:
    return (first + 1 + (shift + nth) % (count - 1)) % count if count > 1 else first


def _alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """Broker ids in an order that alternates between racks, as far as they have enough brokers."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    rows = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max((len(row) for row in rows), default=0)
    return [row[place] for place in range(longest) for row in rows if place < len(row)]


def _spread(
    ordered: Sequence[int], racks: Mapping[int, str], first: int, shift: int, factor: int
) -> tuple[int, ...]:
    """One partition: a rack is used again only when all have been, a broker never."""
    num_racks = len(set(racks.values()))
    replicas = [ordered[first]]
    candidates = 0
    while len(replicas) < factor:
        index = _follower_index(first, shift * num_racks, candidates, len(ordered))
        candidates += 1
        broker = ordered[index]
        used_racks = {racks[replica] for replica in replicas}
        if broker not in replicas and (
            racks[broker] not in used_racks or len(used_racks) == num_racks
        ):
            replicas.append(broker)
    return tuple(replicas)
