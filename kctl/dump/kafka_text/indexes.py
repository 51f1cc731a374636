"""The text of kafka-dump-log for `.index` and `.timeindex` files.

CorruptRecord where Kafka's tool fails with an exception.
"""

from collections.abc import Iterator

from broker.errors import CorruptRecord
from broker.log.file_records import FileRecords
from broker.log.index import Index
from broker.log.layout import LOG, OFFSET_INDEX
from broker.log.offset_index import OffsetIndex, OffsetPosition
from broker.log.time_index import TimeIndex
from broker.records.batch import BatchHeader, iterate_batches
from broker.records.layout import NO_TIMESTAMP
from kctl.dump.kafka_text.options import NOT_FOUND, Afterwards, KafkaOptions, note
from kctl.dump.reading.files import DumpFile
from kctl.dump.reading.readers import open_offset_index, open_records, open_time_index


def dump_offset_index(
    file: DumpFile, options: KafkaOptions, afterwards: Afterwards
) -> Iterator[str]:
    """The entries, each compared with the batch it points to."""
    records = open_records(file.sibling(LOG))
    index = open_offset_index(file.path, file.base_offset)
    if not index.entries:
        yield f"{file.path} is empty."
        return
    if options.index_sanity_check:
        _check_sanity(index, index.last_entry.offset)
        yield f"{file.path} passed sanity check."
        return
    for slot in range(index.entries):
        entry = index.entry(slot)
        if slot and entry.offset == index.base_offset:  # zeros, as left by a crash
            return
        last_offset = _header_at(records, entry.position, options.max_message_bytes).last_offset
        if last_offset != entry.offset:
            note(afterwards.index_mismatches, file, entry.offset, last_offset)
        if not options.verify_index_only:
            yield f"offset: {entry.offset} position: {entry.position}"


def _check_sanity(index: Index, last_offset: int) -> None:
    """The check by which a broker decides at startup whether to rebuild an index."""
    if last_offset < index.base_offset:
        raise CorruptRecord(
            f"{index.path}: expected a last offset from {index.base_offset}, found {last_offset}"
        )
    if index.has_odd_length:
        raise CorruptRecord(
            f"{index.path}: expected entries of {index.ENTRY.size} bytes, "
            f"found {index.path.stat().st_size} bytes in all"
        )


def _header_at(records: FileRecords, position: int, max_bytes: int) -> BatchHeader:
    """The batch that an entry points to; CorruptRecord if it points to nothing."""
    if 0 <= position < records.size:
        for _, header in records.headers(position):
            if header.size_in_bytes <= max_bytes:
                return header
            raise CorruptRecord(
                f"{records.path} position {position}: expected a batch of at most {max_bytes} "
                f"bytes (--max-message-size), found {header.size_in_bytes}"
            )
    raise CorruptRecord(
        f"an index entry points to position {position} of {records.path}, "
        f"where no whole batch of its {records.size} bytes begins"
    )


def dump_time_index(file: DumpFile, options: KafkaOptions, afterwards: Afterwards) -> Iterator[str]:
    """The entries, each compared with the batch that ends with its offset."""
    records = open_records(file.sibling(LOG))
    offset_index = open_offset_index(file.sibling(OFFSET_INDEX), file.base_offset)
    index = open_time_index(file.path, file.base_offset)
    if options.index_sanity_check:
        if index.entries:
            _check_time_sanity(index)
        yield f"{file.path} passed sanity check."
        return
    finder = _Finder(records, offset_index)
    previous = NO_TIMESTAMP
    for slot in range(index.entries):
        entry = index.entry(slot)
        if slot and entry.offset == index.base_offset:
            return
        position, header = finder.find(entry.offset)
        if header is None or header.last_offset != entry.offset:
            last_offset = header.last_offset if header else NOT_FOUND
            note(afterwards.offsets_not_found, file, entry.offset, last_offset)
        else:
            timestamp = _largest_timestamp(records, position, header)
            if timestamp != entry.timestamp:
                note(afterwards.time_mismatches, file, entry.timestamp, timestamp)
            if previous >= entry.timestamp:
                note(afterwards.out_of_order_times, file, entry.timestamp, previous)
        if not options.verify_index_only:
            yield f"timestamp: {entry.timestamp} offset: {entry.offset}"
        previous = entry.timestamp


def _check_time_sanity(index: TimeIndex) -> None:
    first, last = index.entry(0), index.last_entry
    if last.timestamp < first.timestamp:
        raise CorruptRecord(
            f"{index.path}: expected a last timestamp from {first.timestamp}, "
            f"found {last.timestamp}"
        )
    _check_sanity(index, last.offset)


class _Finder:
    """Finds batches by offset, starting each search where the last one ended if that is later.

    An index of an active segment ends with zeros, so every lookup yields position 0, and Kafka's
    tool scans the log from its beginning for each entry.
    """

    def __init__(self, records: FileRecords, index: OffsetIndex) -> None:
        self._records = records
        self._index = index
        self._last = OffsetPosition(index.base_offset, 0)

    def find(self, offset: int) -> tuple[int, BatchHeader | None]:
        """The first batch that ends with `offset` or later, with its position; None at the end."""
        start = self._index.lookup(offset).position
        if offset >= self._last.offset:
            start = max(start, self._last.position)
        if start <= self._records.size:
            for position, header in self._records.headers(start):
                if header.last_offset >= offset:
                    self._last = OffsetPosition(offset, position)
                    return position, header
        return NOT_FOUND, None


def _largest_timestamp(records: FileRecords, position: int, header: BatchHeader) -> int:
    """The largest timestamp of the records themselves, which Kafka's tool compares."""
    (batch,) = iterate_batches(records.read(position, header.size_in_bytes))
    return max([NO_TIMESTAMP, *batch.columns().timestamps])
