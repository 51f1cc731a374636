"""The states of a group and the transitions between them.

EMPTY                 no members; offsets may be kept
PREPARING_REBALANCE   waiting for the members to join
COMPLETING_REBALANCE  all members have joined; waiting for the leader's assignment
STABLE                all members have an assignment
DEAD                  removed, or moved to another coordinator; final
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class GroupState(StrEnum):
    """The state of a group; the value is its name in the protocol."""

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
