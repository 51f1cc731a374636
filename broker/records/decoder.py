"""Decodes the records of a format 2 batch.

Two forms, so that callers do not pay for what they do not use: `decode_records` makes a tuple per
record, `decode_columns` only records the positions of keys and values. Both take the uncompressed
records of one batch as `bytes` and guarantee: nothing beyond them is read, nothing larger than them
is allocated, and bytes that are not exactly `count` whole records raise CorruptRecord and no other
exception.

Why this is cheap: positions only increase, so one comparison at the end of each record with the
record's length proves that all its fields are inside; reading beyond `data` raises an IndexError,
caught once per batch. Varints of one and two bytes are decoded inline, because a call for each
would take five times as long; longer ones are decoded by a function.

setup.py compiles this same file with Cython where it can; decoder.pxd beside it holds the C types.
Integer literals are written out because an imported constant is a Python object in C.
"""

from broker.errors import CorruptRecord
from broker.records.layout import MAX_INT32, MAX_INT64, MIN_RECORD_SIZE
from broker.records.record import Header, Headers, RecordColumns, RecordTuple


def decode_records(  # noqa: C901, PLR0915 - one loop on purpose, see above
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None = None
) -> list[RecordTuple]:
    """The `count` records in `data`, as plain tuples in the order of `Record`.

    `append_time`, where given, is the timestamp of every record (LogAppendTime).
    """
    _check_batch(data, count, base_offset)
    no_headers: Headers = ()
    headers: Headers
    records: list[RecordTuple] = []
    # In C this is a pointer, whose slices are not checked; so the byte after is read first.
    chars = data
    position = 0
    last_raw = 0
    timestamp = base_timestamp if append_time is None else append_time
    try:
        for _ in range(count):
            # The length of the record.
            raw = data[position]
            if raw < 128:
                position += 1
            else:
                second = data[position + 1]
                if second < 128:
                    raw = raw & 127 | second << 7
                    position += 2
                else:
                    raw, position = _long_varint(data, position)
            if raw & 1:
                raise _negative("record length", raw, position)
            record_end = position + (raw >> 1)

            # Its attributes, one unused byte, and its timestamp delta: often that of the record
            # before, so the sum is made only when it changes.
            raw = data[position + 1]
            if raw < 128:
                position += 2
            else:
                second = data[position + 2]
                if second < 128:
                    raw = raw & 127 | second << 7
                    position += 3
                else:
                    raw, position = _varlong(data, position + 1)
            if raw != last_raw:
                last_raw = raw
                if append_time is None:
                    timestamp = _timestamp(base_timestamp, raw)

            raw = data[position]
            if raw < 128:
                position += 1
            else:
                second = data[position + 1]
                if second < 128:
                    raw = raw & 127 | second << 7
                    position += 2
                else:
                    raw, position = _long_varint(data, position)
            offset = base_offset + (raw >> 1)
            if raw & 1:  # negative, which Kafka accepts in uncompressed batches
                offset = base_offset - (raw >> 1) - 1

            raw = data[position]
            if raw == 1:
                key = None
                position += 1
                raw = data[position]
            else:
                if raw < 128:
                    start = position + 1
                else:
                    second = data[position + 1]
                    if second < 128:
                        raw = raw & 127 | second << 7
                        start = position + 2
                    else:
                        raw, start = _long_varint(data, position)
                if raw & 1:  # any negative length is null
                    key = None
                    position = start
                    raw = data[position]
                else:
                    position = start + (raw >> 1)
                    raw = data[position]
                    key = chars[start:position]

            if raw == 1:
                value = None
                position += 1
                raw = data[position]
            else:
                if raw < 128:
                    start = position + 1
                else:
                    second = data[position + 1]
                    if second < 128:
                        raw = raw & 127 | second << 7
                        start = position + 2
                    else:
                        raw, start = _long_varint(data, position)
                if raw & 1:  # any negative length is null
                    value = None
                    position = start
                    raw = data[position]
                else:
                    position = start + (raw >> 1)
                    raw = data[position]
                    value = chars[start:position]

            if raw == 0:
                headers = no_headers
                position += 1
            else:
                headers, position = _headers(data, position)
            if position != record_end:
                raise _wrong_record(len(records), record_end, position)
            records.append((offset, timestamp, key, value, headers))
    except IndexError:
        raise _ended_early(data, len(records), count) from None
    if position != len(data):
        raise _bytes_left(data, count, position)
    return records


def decode_columns(  # noqa: C901, PLR0915 - one loop on purpose, see above
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None = None
) -> RecordColumns:
    """The `count` records in `data`, as columns of offsets, timestamps and spans.

    Headers are checked as strictly as everything else, but not decoded: `read_headers` does that.
    """
    _check_batch(data, count, base_offset)
    columns = RecordColumns(data, count)
    offsets = columns.offsets
    timestamps = columns.timestamps
    key_starts = columns.key_starts
    key_lengths = columns.key_lengths
    value_starts = columns.value_starts
    value_lengths = columns.value_lengths
    header_starts = columns.header_starts
    header_counts = columns.header_counts
    position = 0
    index = 0
    last_raw = 0
    timestamp = base_timestamp if append_time is None else append_time
    try:
        for index in range(count):
            raw = data[position]
            if raw < 128:
                position += 1
            else:
                second = data[position + 1]
                if second < 128:
                    raw = raw & 127 | second << 7
                    position += 2
                else:
                    raw, position = _long_varint(data, position)
            if raw & 1:
                raise _negative("record length", raw, position)
            record_end = position + (raw >> 1)

            raw = data[position + 1]
            if raw < 128:
                position += 2
            else:
                second = data[position + 2]
                if second < 128:
                    raw = raw & 127 | second << 7
                    position += 3
                else:
                    raw, position = _varlong(data, position + 1)
            if raw != last_raw:
                last_raw = raw
                if append_time is None:
                    timestamp = _timestamp(base_timestamp, raw)
            timestamps[index] = timestamp

            raw = data[position]
            if raw < 128:
                position += 1
            else:
                second = data[position + 1]
                if second < 128:
                    raw = raw & 127 | second << 7
                    position += 2
                else:
                    raw, position = _long_varint(data, position)
            offsets[index] = base_offset + (raw >> 1)
            if raw & 1:  # negative, which Kafka accepts in uncompressed batches
                offsets[index] = base_offset - (raw >> 1) - 1

            raw = data[position]
            if raw == 1:
                position += 1
                key_starts[index] = position
                key_lengths[index] = -1
            else:
                if raw < 128:
                    position += 1
                else:
                    second = data[position + 1]
                    if second < 128:
                        raw = raw & 127 | second << 7
                        position += 2
                    else:
                        raw, position = _long_varint(data, position)
                key_starts[index] = position
                if raw & 1:  # any negative length is null
                    key_lengths[index] = -1
                else:
                    length = raw >> 1
                    key_lengths[index] = length
                    position += length

            raw = data[position]
            if raw == 1:
                position += 1
                value_starts[index] = position
                value_lengths[index] = -1
            else:
                if raw < 128:
                    position += 1
                else:
                    second = data[position + 1]
                    if second < 128:
                        raw = raw & 127 | second << 7
                        position += 2
                    else:
                        raw, position = _long_varint(data, position)
                value_starts[index] = position
                if raw & 1:  # any negative length is null
                    value_lengths[index] = -1
                else:
                    length = raw >> 1
                    value_lengths[index] = length
                    position += length

            raw = data[position]
            if raw == 0:
                position += 1
                header_starts[index] = position
            else:
                header_starts[index], header_counts[index], position = _skip_headers(data, position)
            if position != record_end:
                raise _wrong_record(index, record_end, position)
    except IndexError:
        raise _ended_early(data, index, count) from None
    if position != len(data):
        raise _bytes_left(data, count, position)
    return columns


def read_headers(data: bytes, start: int, count: int) -> Headers:
    """The `count` headers that begin at `start`, as `decode_columns` has found them."""
    return _read_headers(data, start, count)[0]


def _check_batch(data: bytes, count: int, base_offset: int) -> None:
    """Refuse what would be expensive before it fails, above all a count too large for the bytes."""
    most = len(data) // MIN_RECORD_SIZE
    if count < 0 or count > most:
        raise CorruptRecord(
            f"expected 0 to {most} records in {len(data)} bytes, found a count of {count}"
        )
    if base_offset > MAX_INT64 - MAX_INT32:
        raise CorruptRecord(f"expected a base offset that leaves room, found {base_offset}")


def _long_varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned 32 bits of a varint of up to five bytes, and the position after it.

    As in Kafka, bits beyond 32 are dropped.
    """
    raw, after = _varlong(data, position)
    if after - position > 5:
        raise CorruptRecord(f"byte {position} of the records: expected a varint of 32 bits")
    return raw & 0xFFFFFFFF, after


def _varlong(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned 64 bits of a varlong of up to ten bytes, and the position after it."""
    raw = shift = 0
    after = position
    while shift < 70:
        byte = data[after]
        after += 1
        raw |= (byte & 127) << shift
        if byte < 128:
            return raw & 0xFFFFFFFFFFFFFFFF, after
        shift += 7
    raise CorruptRecord(f"byte {position} of the records: expected a varint of 64 bits")


def _timestamp(base_timestamp: int, raw: int) -> int:
    """Base plus zigzag delta; the sum wraps as in Java: a delta can be as large as 2**63."""
    timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))
    if -MAX_INT64 <= timestamp <= MAX_INT64:
        return timestamp
    return (timestamp + 2**63) % 2**64 - 2**63


def _headers(data: bytes, position: int) -> tuple[Headers, int]:
    """The headers whose count lies at `position`, and the position after them."""
    count, start = _headers_count(data, position)
    return _read_headers(data, start, count)


def _headers_count(data: bytes, position: int) -> tuple[int, int]:
    raw, start = _long_varint(data, position)
    # A header takes two bytes at least; a larger count must not cost a loop.
    if raw & 1 or raw > len(data) - start:
        raise CorruptRecord(
            f"byte {position} of the records: expected a number of headers that "
            f"{len(data) - start} bytes can hold, found {_zigzag(raw)}"
        )
    return raw >> 1, start


def _read_headers(data: bytes, position: int, count: int) -> tuple[Headers, int]:
    headers: list[Header] = []
    for _ in range(count):
        start, position = _header_key(data, position)
        key = data[start:position].decode("utf-8", "replace")  # as Java decodes
        start, position = _header_value(data, position)
        # A null value ends before the start it would have had.
        headers.append((key, data[start:position] if start <= position else None))
        position = max(start, position)
    return tuple(headers), position


def _skip_headers(data: bytes, position: int) -> tuple[int, int, int]:
    """Where the headers start, how many there are, and the position after them."""
    count, first = _headers_count(data, position)
    position = first
    for _ in range(count):
        _, position = _header_key(data, position)
        start, position = _header_value(data, position)
        position = max(start, position)
    return first, count, position


def _header_key(data: bytes, position: int) -> tuple[int, int]:
    """Where the header's key at `position` starts and ends; it is never null."""
    raw = data[position]
    if raw < 128:
        start = position + 1
    else:
        raw, start = _long_varint(data, position)
    if raw & 1:
        raise _negative("header key length", raw, position)
    return start, start + (raw >> 1)


def _header_value(data: bytes, position: int) -> tuple[int, int]:
    """Where the header's value at `position` starts and ends; null (negative) ends at start - 1."""
    raw = data[position]
    if raw < 128:
        start = position + 1
    else:
        raw, start = _long_varint(data, position)
    if raw & 1:
        return start, start - 1
    return start, start + (raw >> 1)


def _zigzag(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


def _negative(what: str, raw: int, position: int) -> CorruptRecord:
    return CorruptRecord(f"byte {position} of the records: found a {what} of {_zigzag(raw)}")


def _wrong_record(index: int, expected: int, found: int) -> CorruptRecord:
    return CorruptRecord(
        f"record {index}: expected to end at byte {expected} of the records, found {found}"
    )


def _ended_early(data: bytes, index: int, count: int) -> CorruptRecord:
    return CorruptRecord(
        f"expected {count} records in {len(data)} bytes, found the end in record {index}"
    )


def _bytes_left(data: bytes, count: int, position: int) -> CorruptRecord:
    return CorruptRecord(
        f"expected {count} records to end at byte {len(data)}, found the end at {position}"
    )
