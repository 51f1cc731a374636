"""The changes between two snapshots of a cluster."""

from collections.abc import Iterator

from kctl.model.events import Event, EventKind, Snapshot
from kctl.model.topics import Partition, Topic


def changes(before: Snapshot, after: Snapshot) -> list[Event]:
    """What changed: brokers first, then the controller, then topics by name and partition.

    Changes that were undone between the snapshots are not seen.
    """
    return [*_brokers(before, after), *_controller(before, after), *_topics(before, after)]


def _brokers(before: Snapshot, after: Snapshot) -> Iterator[Event]:
    old = {broker.id: broker for broker in before.cluster.brokers}
    new = {broker.id: broker for broker in after.cluster.brokers}
    for broker_id in sorted(old.keys() - new.keys()):
        yield Event(EventKind.BROKER_LEFT, f"broker {broker_id}", str(old[broker_id]))
    for broker_id in sorted(new.keys() - old.keys()):
        yield Event(EventKind.BROKER_JOINED, f"broker {broker_id}", after=str(new[broker_id]))


def _controller(before: Snapshot, after: Snapshot) -> Iterator[Event]:
    old, new = before.cluster.controller_id, after.cluster.controller_id
    if old != new or before.controller_epoch != after.controller_epoch:
        epoch = after.controller_epoch
        detail = f"epoch {epoch}" if epoch is not None else ""
        yield Event(EventKind.CONTROLLER, "controller", old, new, detail)


def _topics(before: Snapshot, after: Snapshot) -> Iterator[Event]:
    old = {topic.name: topic for topic in before.topics}
    new = {topic.name: topic for topic in after.topics}
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield Event(EventKind.TOPIC_DELETED, name, len(old[name].partitions))
        elif name not in old:
            yield Event(EventKind.TOPIC_CREATED, name, after=len(new[name].partitions))
        elif old[name].topic_id != new[name].topic_id:
            yield Event(EventKind.TOPIC_DELETED, name, len(old[name].partitions))
            yield Event(EventKind.TOPIC_CREATED, name, after=len(new[name].partitions))
        else:
            yield from _partitions(old[name], new[name])


def _partitions(before: Topic, after: Topic) -> Iterator[Event]:
    if len(before.partitions) != len(after.partitions):
        counts = len(before.partitions), len(after.partitions)
        yield Event(EventKind.PARTITIONS_ADDED, after.name, *counts)
    for old, new in zip(before.partitions, after.partitions, strict=False):
        yield from _partition(f"{after.name}-{new.id}", old, new)


def _partition(name: str, old: Partition, new: Partition) -> Iterator[Event]:
    if old.replicas != new.replicas:
        yield Event(EventKind.REPLICAS, name, list(old.replicas), list(new.replicas))
    is_new_epoch = old.leader_epoch != new.leader_epoch
    epoch = f"epoch {new.leader_epoch}" if is_new_epoch else ""
    is_same_leader = old.leader == new.leader
    is_same_isr = set(old.isr) == set(new.isr)
    # The controller raises the epoch also when a follower dies. That is part of the ISR's change;
    # alone it means that the same leader was elected again.
    if not is_same_leader or (is_new_epoch and is_same_isr):
        yield Event(EventKind.LEADER, name, old.leader, new.leader, epoch)
    left, joined = set(old.isr) - set(new.isr), set(new.isr) - set(old.isr)
    if left or joined:
        kind = EventKind.ISR_CHANGED
        if not (left and joined):
            kind = EventKind.ISR_SHRUNK if left else EventKind.ISR_EXPANDED
        detail = epoch if is_same_leader else ""
        yield Event(kind, name, list(old.isr), list(new.isr), detail)
