"""An assignment of replicas to brokers, and a draft of another one. Pure.

A draft is changed replica by replica and keeps the account of what every broker would hold, so that
each step of a plan can ask for the emptiest broker. All choices are made in a fixed order: the
same cluster and the same goals give the same plan.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from broker.model import TopicPartition

Assignment = Mapping[TopicPartition, tuple[int, ...]]
"""The replicas of partitions; the first of each is the preferred leader."""


@dataclass(frozen=True)
class Layout:
    """Where the replicas of some topics are, and among which brokers they could be."""

    brokers: Mapping[int, str | None]
    """The racks of the brokers that are up."""
    replicas: Assignment
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Bytes of one replica of a partition; a partition that is not named counts as empty."""

    def size(self, partition: TopicPartition) -> int:
        """Bytes of one replica."""
        return self.sizes.get(partition, 0)


class Draft:
    """A changing copy of a layout's assignment.

    `allowed` are the brokers that may get replicas. `racks` are those that count: empty where racks
    are not to be looked at. Invariant: no partition has a broker twice.
    """

    def __init__(
        self, layout: Layout, allowed: Iterable[int], racks: Mapping[int, str], *, by_size: bool
    ) -> None:
        self.layout = layout
        self.allowed = sorted(allowed)
        self.replicas = {tp: list(found) for tp, found in sorted(layout.replicas.items())}
        self.held: dict[int, list[tuple[int, TopicPartition]]] = defaultdict(list)
        """The replicas that each broker has, with their bytes, the smallest first."""
        self.loads: Counter[int] = Counter()
        """What each broker carries: replicas, or their bytes."""
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
        """In how many racks these brokers are, as far as racks count."""
        return len({self._racks[broker] for broker in brokers if broker in self._racks})

    def crowd(self, partition: TopicPartition, broker: int, *, without: int | None = None) -> int:
        """How many replicas of the partition, `without` not counted, share the broker's rack."""
        rack = self._racks.get(broker)
        if rack is None:
            return 0
        others = (other for other in self.replicas[partition] if other not in (without, broker))
        return sum(self._racks.get(other) == rack for other in others)

    def candidates(self, partition: TopicPartition, without: int | None = None) -> list[int]:
        """Brokers that may get another replica, the best first.

        Best is the rack with the fewest replicas of this partition, then the least load, then the
        fewest replicas of this topic.
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

    def replace(self, partition: TopicPartition, old: int, new: int) -> None:
        """Move a replica; the new one takes the old one's place in the order."""
        found = self.replicas[partition]
        found[found.index(old)] = new
        self._count(partition, old, -1)
        self._count(partition, new, 1)

    def add(self, partition: TopicPartition, broker: int) -> None:
        """One replica more, the last in the order."""
        self.replicas[partition].append(broker)
        self._count(partition, broker, 1)

    def drop(self, partition: TopicPartition, broker: int) -> None:
        """One replica less."""
        self.replicas[partition].remove(broker)
        self._count(partition, broker, -1)

    def prefer(self, partition: TopicPartition, broker: int) -> None:
        """Let a replica be the preferred leader; it changes places with the one that was."""
        found = self.replicas[partition]
        place = found.index(broker)
        found[0], found[place] = found[place], found[0]

    def changes(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The partitions whose replicas are others now, or stand in another order."""
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
