"""Offsets of partitions, and positions that resolve to offsets."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from broker.errors import ErrorCode
from broker.model import TopicPartition

HIGH_WATERMARK = -1
"""As an offset in DeleteRecords: delete up to the high watermark."""


@dataclass(frozen=True)
class Deletion:
    """Result for one partition; `low_watermark` is its new log start offset."""

    partition: TopicPartition
    low_watermark: int
    error: ErrorCode


LATEST_TIMESTAMP = -1

EARLIEST_TIMESTAMP = -2
"""Special timestamps of ListOffsets."""


@dataclass(frozen=True)
class OffsetAnswer:
    """Result of ListOffsets for one partition; `offset` is -1 if no record matches."""

    offset: int
    timestamp: int
    leader_epoch: int

    @property
    def is_known(self) -> bool:
        """Whether a record matches."""
        return self.offset != -1


class Anchor(Enum):
    """The reference point of a position."""

    START = auto()
    """Records after the log start offset."""
    END = auto()
    """Records before the log end: 10 is ten before it."""
    OFFSET = auto()
    """The offset itself."""
    TIME = auto()
    """Milliseconds since 1970."""
    STORED = auto()
    """What the group has committed."""


@dataclass(frozen=True)
class Position:
    """A position that resolves to an offset of each partition."""

    anchor: Anchor
    number: int = 0

    def offset(self, log_start_offset: int, log_end_offset: int) -> int:
        """The offset in a partition, limited to its log.

        Not for TIME and STORED, which need a query.
        """
        wanted = {
            Anchor.START: log_start_offset + self.number,
            Anchor.END: log_end_offset - self.number,
            Anchor.OFFSET: self.number,
        }[self.anchor]
        return max(log_start_offset, min(wanted, log_end_offset))


START: Final = Position(Anchor.START)

END: Final = Position(Anchor.END)

STORED: Final = Position(Anchor.STORED)
