"""Evening out what brokers carry, with as few moves as can be. Pure.

Both ways end where no single step would make things more even, so that evening out once more moves
nothing: replicas go from fuller to emptier brokers; preferred leaders change by the order of the
replicas alone, which costs no bytes.
"""

from collections import defaultdict, deque
from collections.abc import Set
from typing import NamedTuple

from broker.model import TopicPartition
from kctl.plans.reassign_draft import Draft

TOLERATED = 20
"""Bytes are even enough when no move would take a 20th of the mean off the fuller broker."""


class _Step(NamedTuple):
    partition: TopicPartition
    source: int
    target: int


def even_out_replicas(draft: Draft, onto: Set[int], *, by_size: bool) -> None:
    """Move replicas from fuller brokers to emptier ones, but only to those in `onto`.

    Racks get no more crowded by it.
    """
    total = sum(draft.loads[broker] for broker in draft.allowed)
    slack = total // len(draft.allowed) // TOLERATED if by_size else 0
    while step := _next_step(draft, onto, slack):
        draft.replace(*step)


def _next_step(draft: Draft, onto: Set[int], slack: int) -> _Step | None:
    """The move from the fullest broker to the emptiest that makes a difference."""
    by_load = sorted(draft.allowed, key=lambda broker: (draft.loads[broker], broker))
    for source in reversed(by_load):
        for target in by_load:
            gap = draft.loads[source] - draft.loads[target]
            if gap <= slack:
                break
            if target in onto and (best := _best_partition(draft, source, target, slack)):
                return _Step(best, source, target)
    return None


def _best_partition(draft: Draft, source: int, target: int, slack: int) -> TopicPartition | None:
    """The one that brings the two brokers closest together; the smallest of those that tie."""
    gap = draft.loads[source] - draft.loads[target]
    fit = [
        partition
        for partition in draft.held[source] - draft.held[target]
        # The fuller of the two becomes emptier by this much.
        if min(draft.weight(partition), gap - draft.weight(partition)) > slack
        and draft.crowd(partition, target, without=source) <= draft.crowd(partition, source)
    ]
    if not fit:
        return None
    return min(fit, key=lambda tp: (abs(2 * draft.weight(tp) - gap), draft.layout.size(tp), tp))


def even_out_leaders(draft: Draft) -> None:
    """Let each broker be preferred for as many partitions as the others, as far as can be.

    A broker that leads too much may share no partition with one that leads too little, so
    leadership is handed on along a chain of brokers.
    """
    while chain := _shortest_chain(draft):
        for partition, broker in chain:
            draft.prefer(partition, broker)


def _shortest_chain(draft: Draft) -> list[tuple[TopicPartition, int]]:
    """Partitions and their next leaders, from a broker with two or more too many; or nothing."""
    led: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition, replicas in draft.replicas.items():
        led[replicas[0]].append(partition)
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
