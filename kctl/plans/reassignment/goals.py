"""Plans a reassignment from goals.

A plan is made in steps, each with as few moves as possible:

1. replicas leave the brokers that must not have any
2. partitions get the wanted replication factor
3. racks, if that is a goal: no rack has more replicas of a partition than necessary
4. new brokers get their share, or all brokers are balanced, if that is a goal

Later steps preserve the results of earlier ones, so planning again from the result changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from broker.model import TopicPartition
from kctl.model.assignments import Layout
from kctl.plans.reassignment.balance import even_out_leaders, even_out_replicas
from kctl.plans.reassignment.draft import Draft


class Balance(StrEnum):
    """What `--balance` can balance among brokers."""

    COUNT = "count"
    SIZE = "size"
    LEADERS = "leaders"


class Racks(Enum):
    """Treatment of racks."""

    KEPT = "kept"
    """Moved replicas go to racks without a replica of the partition, if possible."""
    MENDED = "mended"
    """Replicas are moved until partitions are spread over as many racks as possible."""
    IGNORED = "ignored"


class Unplannable(Exception):
    """No plan meets the goals; `hint` is a remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Goals:
    """Goals of a reassignment; without goals nothing changes."""

    brokers: frozenset[int] | None = None
    """The only brokers that may have replicas; None for all live brokers."""
    drain: frozenset[int] = frozenset()
    """Brokers that must end up without replicas; they may be down."""
    add: frozenset[int] = frozenset()
    """Brokers that must get their share of replicas."""
    replication_factor: int | None = None
    racks: Racks = Racks.KEPT
    balance: frozenset[Balance] = frozenset()

    def empties(self, broker: int, allowed: frozenset[int]) -> bool:
        """Whether the broker must end up without replicas; one that is only down keeps them."""
        return broker in self.drain or (self.brokers is not None and broker not in allowed)

    @property
    def is_nothing(self) -> bool:
        """Whether there is no goal."""
        return self == Goals(racks=self.racks) and self.racks is not Racks.MENDED


def plan_reassignment(layout: Layout, goals: Goals) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions to change and their new replicas; Unplannable if there is no such plan."""
    allowed = allowed_brokers(layout, goals)
    by_size = Balance.SIZE in goals.balance
    draft = Draft(layout, allowed, _racks(layout, allowed, goals.racks), by_size=by_size)
    for partition in draft.replicas:
        leaving = {b for b in draft.replicas[partition] if goals.empties(b, allowed)}
        _resettle(draft, partition, leaving, goals.replication_factor)
    if goals.racks is Racks.MENDED:
        for partition in draft.replicas:
            _mend_racks(draft, partition)
    if by_size or Balance.COUNT in goals.balance:
        even_out_replicas(draft, allowed, by_size=by_size)
    elif goals.add:
        even_out_replicas(draft, goals.add, by_size=False)
    if Balance.LEADERS in goals.balance:
        even_out_leaders(draft)
    return draft.changes()


def allowed_brokers(layout: Layout, goals: Goals) -> frozenset[int]:
    """The brokers that may have replicas afterwards; Unplannable if no broker may."""
    up = frozenset(layout.brokers)
    wanted = (goals.brokers or frozenset()) | goals.add
    if missing := wanted - up:
        raise Unplannable(
            f"no such broker: {_listed(missing)}", f"the cluster has brokers {_listed(up)}"
        )
    if both := wanted & goals.drain:
        raise Unplannable(
            f"broker {_listed(both)} is both to be drained and to be used", "specify only one"
        )
    allowed = (up if goals.brokers is None else goals.brokers | goals.add) - goals.drain
    if not allowed:
        raise Unplannable("no usable broker remains", "drain fewer brokers")
    return allowed


def _racks(layout: Layout, allowed: frozenset[int], racks: Racks) -> Mapping[int, str]:
    """The racks; Unplannable if only some of the brokers have one."""
    known = {broker: rack for broker, rack in layout.brokers.items() if rack is not None}
    without = sorted(allowed - known.keys())
    if racks is Racks.IGNORED or (not known and racks is Racks.KEPT):
        return {}
    if without:
        raise Unplannable(
            f"broker {_listed(without)} has no rack", "use --no-rack-aware to ignore racks"
        )
    return known


def _resettle(
    draft: Draft, partition: TopicPartition, leaving: set[int], replication_factor: int | None
) -> None:
    """Replace the replicas on drained brokers, and adjust the replication factor."""
    found = draft.replicas[partition]
    num_racks = draft.num_racks(found)
    wanted = replication_factor or len(found)
    unsettled = [broker for broker in found if broker in leaving]
    while len(found) > wanted:
        draft.drop(partition, unsettled.pop() if unsettled else _most_dispensable(draft, partition))
    for broker in unsettled:
        draft.replace(partition, broker, _best_candidate(draft, partition, wanted, broker))
    while len(found) < wanted:
        draft.add(partition, _best_candidate(draft, partition, wanted))
    # A replica that was removed without replacement may have been the only one in its rack.
    possible = min(num_racks, wanted, draft.num_racks(draft.allowed))
    while draft.num_racks(found) < possible and (step := _less_crowded(draft, partition)):
        draft.replace(partition, *step)


def _best_candidate(
    draft: Draft, partition: TopicPartition, wanted: int, leaving: int | None = None
) -> int:
    candidates = draft.candidates(partition, without=leaving)
    if not candidates:
        raise Unplannable(
            f"{wanted} replicas of {partition} require as many brokers, and only "
            f"{len(draft.allowed)} are usable: {_listed(draft.allowed)}",
            "use more brokers, drain fewer, or choose a lower --replication-factor",
        )
    return candidates[0]


def _most_dispensable(draft: Draft, partition: TopicPartition) -> int:
    """The replica to remove: most crowded rack, then most loaded broker, never the leader."""
    followers = draft.replicas[partition][1:]
    return max(
        followers,
        key=lambda broker: (draft.crowd(partition, broker), draft.loads[broker], broker),
    )


def _mend_racks(draft: Draft, partition: TopicPartition) -> None:
    while step := _less_crowded(draft, partition):
        draft.replace(partition, *step)


def _less_crowded(draft: Draft, partition: TopicPartition) -> tuple[int, int] | None:
    """A replica and a broker that would improve the rack spread."""
    ranked = sorted(
        enumerate(draft.replicas[partition]),
        key=lambda placed: (draft.crowd(partition, placed[1]), placed[0]),
        reverse=True,  # the last replica in a rack moves, so that the leader stays if possible
    )
    for _, broker in ranked:
        for target in draft.candidates(partition, without=broker)[:1]:
            crowd = draft.crowd(partition, target, without=broker)
            if crowd < draft.crowd(partition, broker):
                return broker, target
    return None


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))
