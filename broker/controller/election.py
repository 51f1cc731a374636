"""Who leads: Kafka's four elections, each a pure function of what is known of a partition.

- offline: the leader is gone, or there was none. A live member of the ISR leads, and the dead leave
  the ISR; where there is none and the topic allows it, any live replica, and records may be lost.
- reassign: the replicas are being changed, and the leader is not among those that stay.
- preferred: the first of the assigned replicas, if it is alive and in sync.
- controlled shutdown: anybody in sync who is not about to shut down; those who are leave the ISR.

All look through the replicas in the order of their assignment.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from broker.controller.leadership import Leadership
from broker.controller.reassignment import target_of
from broker.metadata.znodes.topics import ReplicaAssignment


class ElectionStrategy(Enum):
    """Which election; the value is how Kafka's messages name it."""

    OFFLINE = "OfflinePartitionLeaderElectionStrategy(false)"
    UNCLEAN = "OfflinePartitionLeaderElectionStrategy(true)"
    REASSIGN = "ReassignPartitionLeaderElectionStrategy"
    PREFERRED = "PreferredReplicaPartitionLeaderElectionStrategy"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElectionStrategy"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The replicas of a partition, and how they are."""

    assignment: ReplicaAssignment
    online: Collection[int]
    """Replicas that are alive, with a working log directory, and not about to shut down."""
    shutting_down: Collection[int] = ()
    """Brokers that are alive and have announced that they will not be."""
    allow_unclean: bool = False
    """Whether the topic would rather lose records than have no leader."""


@dataclass(frozen=True, slots=True)
class Elected:
    """The outcome, and the replicas that have to know."""

    leadership: Leadership
    recipients: tuple[int, ...]


def elect(strategy: ElectionStrategy, state: Leadership, candidates: Candidates) -> Elected | None:
    """A leader in a new epoch; None if nobody may lead."""
    match strategy:
        case ElectionStrategy.OFFLINE | ElectionStrategy.UNCLEAN:
            return _elect_offline(state, candidates, strategy is ElectionStrategy.UNCLEAN)
        case ElectionStrategy.REASSIGN:
            target = target_of(candidates.assignment)
            leader = _first(target, candidates.online, state.isr)
            return None if leader is None else Elected(state.led_by(leader), target)
        case ElectionStrategy.PREFERRED:
            replicas = candidates.assignment.replicas
            leader = _first(replicas[:1], candidates.online, state.isr)
            return None if leader is None else Elected(state.led_by(leader), replicas)
        case ElectionStrategy.CONTROLLED_SHUTDOWN:
            return _elect_before_shutdown(state, candidates)


def _elect_offline(
    state: Leadership, candidates: Candidates, allow_unclean: bool
) -> Elected | None:
    """A. a live member of the ISR; B. any live replica, if allowed; C. nobody."""
    replicas, online = candidates.assignment.replicas, candidates.online
    recipients = tuple(replica for replica in replicas if replica in online)
    leader = _first(replicas, online, state.isr)
    if leader is not None:  # A
        isr = [replica for replica in state.isr if replica in online]
        return Elected(state.led_by(leader, isr), recipients)
    leader = _first(replicas, online)
    if leader is None or not (allow_unclean or candidates.allow_unclean):  # C
        return None
    return Elected(replace(state.led_by(leader, [leader]), is_recovering=True), recipients)  # B


def _elect_before_shutdown(state: Leadership, candidates: Candidates) -> Elected | None:
    replicas, leaving = candidates.assignment.replicas, candidates.shutting_down
    leader = _first(replicas, candidates.online, state.isr)
    if leader is None:
        return None
    recipients = tuple(r for r in replicas if r in candidates.online or r in leaving)
    isr = [replica for replica in state.isr if replica not in leaving]
    return Elected(state.led_by(leader, isr), recipients)


def _first(replicas: Sequence[int], *among: Collection[int]) -> int | None:
    """The first replica that is in all of these."""
    return next((r for r in replicas if all(r in members for members in among)), None)
