"""The states of a transaction, and which may follow which. This table is the only place for it.

    Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ──┐
      ▲          │  └───► PrepareAbort ───► CompleteAbort ───┤
      │          └─ (PrepareEpochFence) ─┘                   │
      └───── InitProducerId ◄──────────────────┴── or Ongoing again

From PrepareCommit and PrepareAbort there is no way back: once stored, the end is decided, and is
carried out by whoever coordinates, after any crash. PrepareEpochFence lasts no longer than one
step, from fencing a producer to preparing the abort; it is never stored. Dead is on its way out:
the tombstone is being written.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """A state, by the number under which it is stored."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """As the admin APIs spell it: `PrepareCommit`."""
        return self.name.title().replace("_", "")


EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT
DEAD: Final = TransactionState.DEAD
PREPARE_EPOCH_FENCE: Final = TransactionState.PREPARE_EPOCH_FENCE

IDLE: Final = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
"""No transaction is open: a new one may begin, and the transactional id may expire."""
ENDING: Final = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
"""The end is decided, its markers are being written."""

VALID_PREVIOUS_STATES: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    EMPTY: IDLE,
    ONGOING: IDLE | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: frozenset({ONGOING, PREPARE_EPOCH_FENCE}),
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: IDLE,
    PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
}

BY_KAFKA_NAME: Final = {state.kafka_name: state for state in TransactionState}
