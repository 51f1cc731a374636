"""Kafka's PartitionLeaderElectionAlgorithms: four elections, each a pure function.

- offline: the leader is dead, or there was none. The first live member of the ISR leads, and dead
  members leave the ISR. If the ISR has no live member and the topic allows unclean elections, the
  first live replica leads, alone in the ISR: records that it lacks are lost.
- reassign: the leader is not one of the target replicas. The first of these that is alive and in
  the ISR leads.
- preferred: the first assigned replica leads, if it is alive and in the ISR.
- controlled shutdown: the first live member of the ISR that is not shutting down leads; those that
  are shutting down leave the ISR.

All go through the replicas in the order of their assignment.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from broker.controller.leadership import Leadership
from broker.controller.replica_assignment import target_of
from broker.metadata.znodes.topics import ReplicaAssignment


class ElectionStrategy(Enum):
    """The election to hold; the value is its name in Kafka's messages."""

    OFFLINE = "OfflinePartitionLeaderElectionStrategy(false)"
    UNCLEAN = "OfflinePartitionLeaderElectionStrategy(true)"
    REASSIGN = "ReassignPartitionLeaderElectionStrategy"
    PREFERRED = "PreferredReplicaPartitionLeaderElectionStrategy"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElectionStrategy"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The replicas of a partition, and which of them are alive."""

    assignment: ReplicaAssignment
    online: Collection[int]
    """Replicas that are alive, with an online log directory, and not shutting down."""
    shutting_down: Collection[int] = ()
    """Live brokers that have requested a controlled shutdown."""
    allow_unclean: bool = False
    """The topic's `unclean.leader.election.enable`."""


@dataclass(frozen=True, slots=True)
class Elected:
    """The outcome, and the replicas that must be sent LeaderAndIsr."""

    leadership: Leadership
    recipients: tuple[int, ...]


def elect(strategy: ElectionStrategy, state: Leadership, candidates: Candidates) -> Elected | None:
    """The leader and ISR in a new leader epoch; None if no replica is eligible."""
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
    """A. a live member of the ISR; B. any live replica, if allowed; C. no leader."""
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
    """The first replica that is in all of these collections."""
    return next((r for r in replicas if all(r in members for members in among)), None)
