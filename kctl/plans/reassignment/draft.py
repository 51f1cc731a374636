"""A draft of an assignment, changed replica by replica.

The draft keeps the load of every broker up to date, so that each planning step can pick the least
loaded one. All choices are deterministic: the same cluster and goals give the same plan.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from broker.model import TopicPartition
from kctl.model.assignments import Layout


class Draft:
    """A mutable copy of a layout's assignment.

    `allowed` are the brokers that may get replicas; `racks` maps brokers to racks and is empty if
    racks are ignored. Invariant: no partition has a broker twice.
    """

    def __init__(
        self, layout: Layout, allowed: Iterable[int], racks: Mapping[int, str], *, by_size: bool
    ) -> None:
        self.layout = layout
        self.allowed = sorted(allowed)
        self.replicas = {tp: list(found) for tp, found in sorted(layout.replicas.items())}
        self.held: dict[int, list[tuple[int, TopicPartition]]] = defaultdict(list)
        """The replicas of each broker with their bytes, smallest first."""
        self.loads: Counter[int] = Counter()
        """The load of each broker: number of replicas, or their bytes."""
        self._racks = racks
        self._by_size = by_size
        self._of_topic: Counter[tuple[int, str]] = Counter()
        for partition, found in self.replicas.items():
            for broker in found:
                self._count(partition, broker, 1)

    def weight(self, partition: TopicPartition) -> int:
        """What one replica of the partition adds to a broker's load."""
        return self.layout.size(partition) if self._by_size else 1

    def num_racks(self, brokers: Iterable[int]) -> int:
        """The number of racks of these brokers."""
        return len({self._racks[broker] for broker in brokers if broker in self._racks})

    def crowd(self, partition: TopicPartition, broker: int, *, without: int | None = None) -> int:
        """The number of replicas of the partition in the broker's rack, not counting `without`."""
        rack = self._racks.get(broker)
        if rack is None:
            return 0
        others = (other for other in self.replicas[partition] if other not in (without, broker))
        return sum(self._racks.get(other) == rack for other in others)

    def candidates(self, partition: TopicPartition, without: int | None = None) -> list[int]:
        """Brokers that may get another replica, best first.

        The order: fewest replicas of this partition in the rack, lowest load, fewest replicas of
        this topic.
        """
        free = [broker for broker in self.allowed if broker not in self.replicas[partition]]
        return sorted(
            free,
            key=lambda broker: (
                self.crowd(partition, broker, without=without),
                self.loads[broker],
                len(self.held[broker]),
                self._of_topic[broker, partition.topic],
                broker,
            ),
        )

    def keeps_original(self, partition: TopicPartition, leaving: int) -> bool:
        """Whether an original replica remains if `leaving` goes; false for a single replica."""
        original = self.layout.replicas[partition]
        return any(b in original for b in self.replicas[partition] if b != leaving)

    def replace(self, partition: TopicPartition, old: int, new: int) -> None:
        """Move a replica; the new one takes the position of the old one."""
        found = self.replicas[partition]
        found[found.index(old)] = new
        self._count(partition, old, -1)
        self._count(partition, new, 1)

    def add(self, partition: TopicPartition, broker: int) -> None:
        """Add a replica at the end."""
        self.replicas[partition].append(broker)
        self._count(partition, broker, 1)

    def drop(self, partition: TopicPartition, broker: int) -> None:
        """Remove a replica."""
        self.replicas[partition].remove(broker)
        self._count(partition, broker, -1)

    def prefer(self, partition: TopicPartition, broker: int) -> None:
        """Make a replica the preferred leader by swapping it with the first one."""
        found = self.replicas[partition]
        place = found.index(broker)
        found[0], found[place] = found[place], found[0]

    def changes(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The partitions whose replicas or their order have changed."""
        before = self.layout.replicas
        return {
            partition: tuple(found)
            for partition, found in self.replicas.items()
            if tuple(found) != before[partition]
        }

    def _count(self, partition: TopicPartition, broker: int, by: int) -> None:
        self.loads[broker] += by * self.weight(partition)
        self._of_topic[broker, partition.topic] += by
        held, entry = self.held[broker], (self.layout.size(partition), partition)
        if by > 0:
            insort(held, entry)
        else:
            del held[bisect_left(held, entry)]
