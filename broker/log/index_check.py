"""Checks whether the indexes found on disk belong to the log beside them.

The check costs a few header reads, whatever the size of the segment, because it compares only the
ends: a cut, zeroed or foreign index is wrong there. A wrong entry in the middle is detected when a
lookup uses it, and a lookup that uses a correct entry is right, whatever the other entries are.

Each function returns a description of the problem for the log, or an empty string.
"""

from broker.errors import CorruptRecord
from broker.log.file_records import FileRecords
from broker.log.offset_index import OffsetIndex
from broker.log.time_index import TimeIndex, TimestampOffset

MAX_APPEND_BYTES = 10 * 1024 * 1024
"""The largest append (a follower's fetch response), so the largest gap between index entries."""


def describe_index_problem(
    log: FileRecords, offset_index: OffsetIndex, time_index: TimeIndex, interval_bytes: int
) -> str:
    """Why an index does not belong to this log."""
    try:
        return _describe_wrong_end(log, offset_index, time_index, interval_bytes)
    except (CorruptRecord, ValueError) as error:
        return str(error)


def _describe_wrong_end(
    log: FileRecords, offset_index: OffsetIndex, time_index: TimeIndex, interval_bytes: int
) -> str:
    """As `describe_index_problem`, but CorruptRecord or ValueError for some of the problems."""
    if offset_index.has_odd_length or time_index.has_odd_length:
        return "an index is cut inside an entry"
    last = offset_index.last_entry
    if offset_index.entries:
        if not 0 < last.position < log.size:
            return f"the offset index ends with {last} in a log of {log.size} bytes"
        log.search_for_offset(last.offset, last.position, last.offset)
    largest = time_index.last_entry
    if time_index.entries and not _is_sound_time_entry(log, offset_index, largest):
        return f"the time index ends with {largest}, which no batch has"
    for position, header in log.headers(last.position):
        if header.max_timestamp > largest.timestamp:
            return f"the time index ends with {largest}, older than the end of the log"
        if position - last.position > interval_bytes + MAX_APPEND_BYTES:
            return f"the offset index ends with {last}, far from the end of the log"
    return ""


def describe_time_entry_problem(
    log: FileRecords, offset_index: OffsetIndex, entry: TimestampOffset
) -> str:
    """Why an entry of the time index cannot be used: it or the offset index is wrong."""
    try:
        return "" if _is_sound_time_entry(log, offset_index, entry) else f"{entry} is wrong"
    except CorruptRecord as error:
        return str(error)


def _is_sound_time_entry(
    log: FileRecords, offset_index: OffsetIndex, entry: TimestampOffset
) -> bool:
    """Whether the batch that holds the entry's offset has the entry's timestamp.

    CorruptRecord if the offset index, which locates that batch, is wrong there.
    """
    near = offset_index.lookup(entry.offset)
    found = log.search_for_offset(
        entry.offset, near.position, near.offset if near.position else None
    )
    if found is None:
        return False
    headers = log.headers(found.position)
    return next(headers)[1].max_timestamp == entry.timestamp
