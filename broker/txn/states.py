"""The states of a transaction and the transitions between them.

    Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ──┐
      ▲          │  └───► PrepareAbort ───► CompleteAbort ───┤
      │          └─ (PrepareEpochFence) ─┘                   │
      └───── InitProducerId ◄──────────────────┴── or Ongoing again

PrepareCommit and PrepareAbort are final decisions: once stored, every later coordinator completes
them, also after a crash. PrepareEpochFence exists only between fencing a producer and preparing the
abort; it is never stored. Dead: the tombstone is being written.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """A state; the value is its number in the log."""

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
        """The name in the admin APIs: `PrepareCommit`."""
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
"""No transaction is ongoing: a new one may start, and the transactional id may expire."""
ENDING: Final = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
"""The outcome is decided and markers are being written."""

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
