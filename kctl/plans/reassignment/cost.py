"""Cost and effect of a reassignment, and its batches."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kctl.model.assignments import Assignment, Layout
from kctl.model.reassignments import BrokerLoad, PartitionChange, ReassignmentCost


def changes_of(layout: Layout, assignment: Assignment) -> list[PartitionChange]:
    """The changes that lead to `assignment`, sorted by partition; unchanged ones are left out."""
    return [
        PartitionChange(
            partition, tuple(layout.replicas[partition]), tuple(then), layout.size(partition)
        )
        for partition, then in sorted(assignment.items())
        if tuple(layout.replicas[partition]) != tuple(then)
    ]


def batches_of(changes: Sequence[PartitionChange], batch_size: int) -> list[list[PartitionChange]]:
    """Changes in batches of `batch_size`; those that copy nothing form the first batch."""
    free = [change for change in changes if not change.adding]
    costly = [change for change in changes if change.adding]
    chunks = [costly[at : at + batch_size] for at in range(0, len(costly), batch_size)]
    return [free, *chunks] if free else chunks


@dataclass(frozen=True)
class _Loads:
    """Replicas, leaders and bytes of each broker in one assignment."""

    replicas: Counter[int]
    leaders: Counter[int]
    sizes: Counter[int]


def _loads(layout: Layout, assignment: Assignment) -> _Loads:
    replicas, leaders, sizes = Counter[int](), Counter[int](), Counter[int]()
    for partition, found in assignment.items():
        leaders[found[0]] += 1
        for broker in found:
            replicas[broker] += 1
            sizes[broker] += layout.size(partition)
    return _Loads(replicas, leaders, sizes)


def skew(counts: Counter[int], brokers: Iterable[int]) -> float:
    """The highest count divided by the mean; 1.0 is even, also if all counts are 0."""
    values = [counts[broker] for broker in brokers]
    total = sum(values)
    return round(max(values) * len(values) / total, 2) if total else 1.0


def broker_loads(layout: Layout, assignment: Assignment) -> list[BrokerLoad]:
    """The load of each broker before and after, sorted by broker id."""
    now = _loads(layout, layout.replicas)
    then = _loads(layout, {**layout.replicas, **assignment})
    incoming = Counter[int]()
    for change in changes_of(layout, assignment):
        incoming.update(dict.fromkeys(change.adding, change.size_bytes))
    return [
        BrokerLoad(
            broker,
            layout.brokers.get(broker),
            now.replicas[broker],
            then.replicas[broker],
            now.leaders[broker],
            then.leaders[broker],
            now.sizes[broker],
            then.sizes[broker],
            incoming[broker],
        )
        for broker in sorted({*layout.brokers, *now.replicas, *then.replicas})
    ]


def reassignment_cost(
    layout: Layout, assignment: Assignment, allowed: Iterable[int]
) -> ReassignmentCost:
    """The totals; skews are computed over the `allowed` brokers."""
    brokers = list(allowed)
    changes = changes_of(layout, assignment)
    now = _loads(layout, layout.replicas)
    then = _loads(layout, {**layout.replicas, **assignment})
    return ReassignmentCost(
        partitions=len(changes),
        replicas_added=sum(len(change.adding) for change in changes),
        replicas_removed=sum(len(change.removing) for change in changes),
        leaders_changed=sum(change.now[0] != change.then[0] for change in changes),
        move_bytes=sum(change.move_bytes for change in changes),
        replica_skew_now=skew(now.replicas, brokers),
        replica_skew_then=skew(then.replicas, brokers),
        leader_skew_now=skew(now.leaders, brokers),
        leader_skew_then=skew(then.leaders, brokers),
        byte_skew_now=skew(now.sizes, brokers),
        byte_skew_then=skew(then.sizes, brokers),
    )
