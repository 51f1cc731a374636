"""Whether indexes that were found on disk are those of the log beside them.

Costs a few header reads, whatever the size of the segment, because only the ends are looked at: a
cut, zeroed or foreign index shows there. A wrong entry in the middle shows when a lookup lands on
it; a lookup that lands on a sound entry is right, whatever lies around it.
"""

from broker.log.file_records import FileRecords
from broker.log.offset_index import OffsetIndex
from broker.log.time_index import TimeIndex, TimestampOffset

# The most that one append can be (a follower's fetch answer): index entries may lie so far apart.
MAX_APPEND_BYTES = 10 * 1024 * 1024


def find_index_problem(
    log: FileRecords, offset_index: OffsetIndex, time_index: TimeIndex, interval_bytes: int
) -> str:
    """What shows that an index is not of this log, or nothing; CorruptRecord says so too."""
    if offset_index.has_odd_length or time_index.has_odd_length:
        return "an index is cut inside an entry"
    last = offset_index.last_entry
    if offset_index.entries:
        if not 0 < last.position < log.size:
            return f"the offset index ends with {last} in a log of {log.size} bytes"
        log.search_for_offset(last.offset, last.position, last.offset)
    largest = time_index.last_entry
    if time_index.entries and not is_sound_time_entry(log, offset_index, largest):
        return f"the time index ends with {largest}, which no batch has"
    for position, header in log.headers(last.position):
        if header.max_timestamp > largest.timestamp:
            return f"the time index ends with {largest}, older than the end of the log"
        if position - last.position > interval_bytes + MAX_APPEND_BYTES:
            return f"the offset index ends with {last}, far from the end of the log"
    return ""


def is_sound_time_entry(
    log: FileRecords, offset_index: OffsetIndex, entry: TimestampOffset
) -> bool:
    """Whether the batch that holds the entry's offset has the entry's timestamp.

    CorruptRecord if the offset index, which is asked where that batch is, is wrong there.
    """
    near = offset_index.lookup(entry.offset)
    found = log.search_for_offset(
        entry.offset, near.position, near.offset if near.position else None
    )
    if found is None:
        return False
    headers = log.headers(found.position)
    return next(headers)[1].max_timestamp == entry.timestamp
