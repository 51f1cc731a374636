"""From goals to a reassignment: which replicas go where. Pure.

A plan is made in steps, each of which moves no more than it must:

    1. replicas on brokers that are to have none go elsewhere
    2. partitions get the number of replicas that is wanted
    3. racks, if that is a goal: no rack has more replicas of a partition than it must
    4. new brokers get their share; or all are evened out, if that is a goal

What a step has settled the later ones keep, so planning from the result moves nothing more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from broker.model import TopicPartition
from kctl.plans.reassign_balance import even_out_leaders, even_out_replicas
from kctl.plans.reassign_draft import Draft, Layout


class Balance(StrEnum):
    """What can be evened out among the brokers."""

    COUNT = "count"
    SIZE = "size"
    LEADERS = "leaders"


class Racks(Enum):
    """What racks count for."""

    KEPT = "kept"
    """Replicas that move go to racks that have none yet, where there is one."""
    MENDED = "mended"
    """Replicas move so that partitions are in as many racks as they can be."""
    IGNORED = "ignored"


class Unplannable(Exception):
    """No plan meets the goals; the text says why, `hint` what to change."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Goals:
    """What a reassignment is for; without any goal it changes nothing."""

    brokers: frozenset[int] | None = None
    """The only ones that are to have replicas; None: any that is up."""
    drain: frozenset[int] = frozenset()
    """Brokers that are to have none; they may be down already."""
    add: frozenset[int] = frozenset()
    """Brokers that are to get their share."""
    replication_factor: int | None = None
    racks: Racks = Racks.KEPT
    balance: frozenset[Balance] = frozenset()

    def empties(self, broker: int, allowed: frozenset[int]) -> bool:
        """Whether the broker is to have no replicas; one that is merely down keeps its own."""
        return broker in self.drain or (self.brokers is not None and broker not in allowed)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is wanted."""
        return self == Goals(racks=self.racks) and self.racks is not Racks.MENDED


def plan_reassignment(layout: Layout, goals: Goals) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions to change with their new replicas; Unplannable if it cannot be done."""
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
    """The brokers that may have replicas when all is done; Unplannable if that cannot be."""
    up = frozenset(layout.brokers)
    wanted = (goals.brokers or frozenset()) | goals.add
    if missing := wanted - up:
        raise Unplannable(f"no such broker: {_listed(missing)}", f"there are {_listed(up)}")
    if both := wanted & goals.drain:
        raise Unplannable(f"broker {_listed(both)} is to be drained and used", "say one of them")
    allowed = (up if goals.brokers is None else goals.brokers | goals.add) - goals.drain
    if not allowed:
        raise Unplannable("no broker is left to use", "drain fewer brokers")
    return allowed


def _racks(layout: Layout, allowed: frozenset[int], racks: Racks) -> Mapping[int, str]:
    """The racks to look at; Unplannable if some brokers have one and others have none."""
    known = {broker: rack for broker, rack in layout.brokers.items() if rack is not None}
    without = sorted(allowed - known.keys())
    if racks is Racks.IGNORED or (not known and racks is Racks.KEPT):
        return {}
    if without:
        raise Unplannable(
            f"broker {_listed(without)} has no rack", "--no-rack-aware takes no notice of racks"
        )
    return known


def _resettle(
    draft: Draft, partition: TopicPartition, leaving: set[int], replication_factor: int | None
) -> None:
    """Move the replicas that are leaving, and make them all as many as are wanted."""
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
    # A replica that left and was not replaced may have been the only one in its rack.
    possible = min(num_racks, wanted, draft.num_racks(draft.allowed))
    while draft.num_racks(found) < possible and (step := _less_crowded(draft, partition)):
        draft.replace(partition, *step)


def _best_candidate(
    draft: Draft, partition: TopicPartition, wanted: int, leaving: int | None = None
) -> int:
    candidates = draft.candidates(partition, without=leaving)
    if not candidates:
        raise Unplannable(
            f"{wanted} replicas of {partition} need as many brokers, and there are"
            f" {len(draft.allowed)}: {_listed(draft.allowed)}",
            "use more brokers, drain fewer, or ask for a lower --replication-factor",
        )
    return candidates[0]


def _most_dispensable(draft: Draft, partition: TopicPartition) -> int:
    """The replica to give up: in the most crowded rack, on the fullest broker, not the leader."""
    followers = draft.replicas[partition][1:]
    return max(
        followers,
        key=lambda broker: (draft.crowd(partition, broker), draft.loads[broker], broker),
    )


def _mend_racks(draft: Draft, partition: TopicPartition) -> None:
    while step := _less_crowded(draft, partition):
        draft.replace(partition, *step)


def _less_crowded(draft: Draft, partition: TopicPartition) -> tuple[int, int] | None:
    """A replica and a broker where it would share its rack with fewer others."""
    ranked = sorted(
        enumerate(draft.replicas[partition]),
        key=lambda placed: (draft.crowd(partition, placed[1]), placed[0]),
        reverse=True,  # of the replicas in one rack the last goes: rather not the leader
    )
    for _, broker in ranked:
        for target in draft.candidates(partition, without=broker)[:1]:
            crowd = draft.crowd(partition, target, without=broker)
            if crowd < draft.crowd(partition, broker):
                return broker, target
    return None


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))
