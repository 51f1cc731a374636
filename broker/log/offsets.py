"""Results about offsets: the position of one on disk, a read, a lookup by timestamp."""

from enum import Enum
from typing import Final, NamedTuple

from broker.log.files import FileSlice
from broker.log.transaction_index import AbortedTxn

UNKNOWN_POSITION: Final = -1

# Special timestamps of ListOffsets.
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5


class FetchIsolation(Enum):
    """The end offset up to which a reader may read."""

    LOG_END = "log end"  # followers
    HIGH_WATERMARK = "read_uncommitted"
    TXN_COMMITTED = "read_committed"


# Module constants, because looking up a member of an enum takes as long as several calls.
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

    `records` is None if there is nothing to read; its last batch may be cut, and if
    `first_entry_incomplete`, the first one is. `aborted_transactions` is None unless the reader
    reads with isolation TXN_COMMITTED.

    `is_off_end_segment`: the offset is not in the segment where the reader's isolation ends, but in
    an older one or beyond that end. It is possible that no more bytes will follow there, so a fetch
    must not wait for them (case F of Kafka's DelayedFetch).
    """

    records: FileSlice | None
    first_entry_incomplete: bool = False
    aborted_transactions: list[AbortedTxn] | None = None
    is_off_end_segment: bool = False


class TimestampedOffset(NamedTuple):
    """The result of ListOffsets; `leader_epoch` is None if unknown."""

    timestamp: int
    offset: int
    leader_epoch: int | None
