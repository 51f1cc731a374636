"""Small answers about offsets: where one lies on disk, what a read found, what a time maps to."""

from enum import Enum
from typing import Final, NamedTuple

from broker.log.files import FileSlice
from broker.log.transaction_index import AbortedTxn

UNKNOWN_POSITION: Final = -1

# ListOffsets asks for these in the place of a time.
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5


class FetchIsolation(Enum):
    """How far a reader may see."""

    LOG_END = "log end"  # followers
    HIGH_WATERMARK = "read_uncommitted"
    TXN_COMMITTED = "read_committed"


# Names of their own, because to look up a member in its enum takes as long as several calls.
LOG_END: Final = FetchIsolation.LOG_END
HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


class LogOffsetMetadata(NamedTuple):
    """An offset and where its batch begins: base offset of the segment, position in the file."""

    offset: int
    segment_base_offset: int
    position: int


class FetchData(NamedTuple):
    """What a read found.

    `records` is None where there is nothing to read; its last batch may be cut, and if
    `first_entry_incomplete`, the first one is. `aborted_transactions` is None unless the reader
    asked for committed records only.
    """

    records: FileSlice | None
    first_entry_incomplete: bool = False
    aborted_transactions: list[AbortedTxn] | None = None


class TimestampedOffset(NamedTuple):
    """The answer to ListOffsets; `leader_epoch` is None where it is not known."""

    timestamp: int
    offset: int
    leader_epoch: int | None
