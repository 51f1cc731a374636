"""The five states of a group, and which may follow which.

EMPTY                 no members; offsets may be kept
PREPARING_REBALANCE   waiting for the members to join
COMPLETING_REBALANCE  all have joined; waiting for the leader's assignment
STABLE                everybody has an assignment
DEAD                  removed, or moved to another coordinator; never left again
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class GroupState(StrEnum):
    """Where a group stands; the values are the names Kafka answers with."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = GroupState

TRANSITIONS: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    # a member joins; deleted, expired or moved away
    EMPTY: frozenset({PREPARING_REBALANCE, DEAD}),
    # all joined (or the time is up); all left; moved away
    PREPARING_REBALANCE: frozenset({COMPLETING_REBALANCE, EMPTY, DEAD}),
    # the assignment is stored; members changed, or storing failed; moved away
    COMPLETING_REBALANCE: frozenset({STABLE, PREPARING_REBALANCE, DEAD}),
    # members changed; moved away
    STABLE: frozenset({PREPARING_REBALANCE, DEAD}),
    DEAD: frozenset({DEAD}),
}
