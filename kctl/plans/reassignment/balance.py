"""Balancing of replicas and leaders with few moves.

Both functions stop where no single step improves the balance, so balancing again changes nothing.
Replicas move from more to less loaded brokers; preferred leaders change by reordering replicas,
which copies nothing.
"""

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from broker.model import TopicPartition
from kctl.plans.reassignment.draft import Draft

TOLERATED = 20
"""Bytes are balanced if every broker is within 5 % of the mean."""


class _Step(NamedTuple):
    partition: TopicPartition
    source: int
    target: int


@dataclass(frozen=True)
class _Aim:
    """The target of balancing."""

    mean: float
    slack: float
    by_size: bool

    def wants(self, fuller: int, emptier: int) -> bool:
        """Whether a replica should move from one broker to the other, judged by their loads."""
        is_off = fuller > self.mean + self.slack or emptier < self.mean - self.slack
        return is_off and fuller - emptier > 1

    def ideal(self, fuller: int, emptier: int) -> float:
        """The weight that moves neither of them past the mean; if one is past it, half the
        difference.
        """
        surplus, deficit = fuller - self.mean, self.mean - emptier
        return min(surplus, deficit) if min(surplus, deficit) > 0 else (fuller - emptier) / 2


def even_out_replicas(draft: Draft, onto: Set[int], *, by_size: bool) -> None:
    """Move replicas from more to less loaded brokers, but only to those in `onto`.

    Rack spread does not get worse. By count it stops when no two brokers differ by more than one,
    as far as moves are possible; by size, when all are near the mean.
    """
    mean = sum(draft.loads[broker] for broker in draft.allowed) / len(draft.allowed)
    aim = _Aim(mean, mean / TOLERATED if by_size else 0.0, by_size)
    while step := _next_step(draft, onto, aim):
        draft.replace(*step)


def _next_step(draft: Draft, onto: Set[int], aim: _Aim) -> _Step | None:
    """The best move from the most to the least loaded broker."""
    by_load = sorted(draft.allowed, key=lambda broker: (draft.loads[broker], broker))
    for source in reversed(by_load):
        for target in by_load:
            if not aim.wants(draft.loads[source], draft.loads[target]):
                break
            if target in onto and (best := _best_partition(draft, source, target, aim)):
                return _Step(best, source, target)
    return None


def _best_partition(draft: Draft, source: int, target: int, aim: _Aim) -> TopicPartition | None:
    """The replica that balances the two best; by count, the smallest movable one.

    Partitions that keep a replica of their original ones come first: that one needs no copying,
    and a failed move cannot lose data.
    """
    fallback = None
    fuller, emptier = draft.loads[source], draft.loads[target]
    ideal = aim.ideal(fuller, emptier) if aim.by_size else 0.0
    for partition in _nearest(draft.held[source], ideal):
        weight = draft.weight(partition)
        # At least a tenth of the copied bytes must improve the balance, or two brokers just swap.
        gain = min(weight, fuller - emptier - weight)
        if (
            gain * 10 >= weight > 0
            and gain > 0
            and target not in draft.replicas[partition]
            and draft.crowd(partition, target, without=source) <= draft.crowd(partition, source)
        ):
            if draft.keeps_original(partition, source):
                return partition
            fallback = fallback or partition
    return fallback


def _nearest(held: Sequence[tuple[int, TopicPartition]], ideal: float) -> Iterator[TopicPartition]:
    """Partitions by the distance of their size from the ideal, smaller ones first."""
    above = bisect_left(held, ideal, key=lambda entry: entry[0])
    below = above - 1
    while below >= 0 or above < len(held):
        takes_below = above == len(held) or (
            below >= 0 and ideal - held[below][0] <= held[above][0] - ideal
        )
        yield held[below if takes_below else above][1]
        below, above = (below - 1, above) if takes_below else (below, above + 1)


def even_out_leaders(draft: Draft) -> None:
    """Make each broker the preferred leader of equally many partitions, as far as possible.

    A broker with too many leaders may share no partition with one that has too few, so leadership
    is passed along a chain of brokers.
    """
    led: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition, replicas in draft.replicas.items():
        led[replicas[0]].append(partition)
    while chain := _shortest_chain(draft, led):
        for partition, broker in chain:
            led[draft.replicas[partition][0]].remove(partition)
            insort(led[broker], partition)
            draft.prefer(partition, broker)


def _shortest_chain(
    draft: Draft, led: Mapping[int, Sequence[TopicPartition]]
) -> list[tuple[TopicPartition, int]]:
    """A chain of partitions and new leaders, starting at an overloaded broker; may be empty."""
    for start in sorted(draft.allowed, key=lambda broker: (-len(led[broker]), broker)):
        came_by: dict[int, tuple[TopicPartition, int]] = {}
        waiting = deque([start])
        while waiting:
            broker = waiting.popleft()
            if len(led[broker]) <= len(led[start]) - 2:
                return _walk_back(came_by, start, broker)
            for partition in led[broker]:
                for other in draft.replicas[partition]:
                    if other != start and other not in came_by:
                        came_by[other] = (partition, broker)
                        waiting.append(other)
    return []


def _walk_back(
    came_by: dict[int, tuple[TopicPartition, int]], start: int, end: int
) -> list[tuple[TopicPartition, int]]:
    chain = []
    broker = end
    while broker != start:
        partition, giver = came_by[broker]
        chain.append((partition, broker))
        broker = giver
    return chain
