"""Walks over the records of a client's batch and checks their structure; decodes nothing.

Kafka's LogValidator reads every record that a client sends, so a batch whose header and crc are
right but whose records are not is refused instead of stopping consumers at that offset for good.
The rules here are those of Kafka 3.9, including its gaps:

* A batch that is stored as it was sent (the usual case) and is compressed is read by Kafka without
  comparing the length of a record with the fields inside it. `check_sizes` is False for these.
* A negative key or value length is null, whatever the number; a header key must not be null.
* A varint takes at most five bytes, a varlong ten; bits beyond 32 or 64 are dropped.
* A record length in an uncompressed batch that does not end after five bytes is
  UNKNOWN_SERVER_ERROR in Kafka; every other defect is INVALID_RECORD.

As in `decoder`, positions only increase, reading beyond the end raises an IndexError that is caught
once per batch, and varints of one and two bytes are read inline. setup.py compiles this file with
Cython, with the C types in scan.pxd; without a compiler the same file gives the same verdicts.
The integer literals are written out because an imported constant would be a Python object in C.
"""

from broker.errors import ApiError, ErrorCode

RecordScan = tuple[int, int, int, bool, int]
"""(smallest timestamp, largest timestamp, number of null keys, is it sequential: offset deltas are
0, 1, 2, …, and the position after the last record).

Timestamps of -1 (none) do not count. The smallest is 2**63 - 1 and the largest -1 if no record has
a timestamp.
"""

SuspectRecord = tuple[int, int, int, bool]
"""(index, timestamp, offset delta, has a key) of a record that the topic's settings may refuse."""


class RecordBeyondEnd(ApiError):
    """INVALID_RECORD: a record reaches beyond the end of the records."""

    def __init__(self, index: int, count: int) -> None:
        super().__init__(
            ErrorCode.INVALID_RECORD,
            f"invalid record batch: record {index}: it reaches beyond the end; "
            f"the header says {count}",
        )


MAX_SUSPECTS = 10_000
"""Most records that `scan_records` names, so that a batch of millions does not cost memory.

Kafka names all of them. A producer's batch seldom has more than some thousand records.
"""

PIECE_RECORDS = 50_000
"""Records of one piece of `scan_in_pieces`."""


def scan_records(  # noqa: C901, PLR0915 - one loop on purpose, see above
    data: memoryview,
    start: int,
    count: int,
    base_timestamp: int,
    is_compressed: bool,
    check_sizes: bool,
    suspects: list[SuspectRecord] | None = None,
    oldest: int = -9223372036854775807,
    newest: int = 9223372036854775807,
    first: int = 0,
    is_last: bool = True,
    check_form: bool = False,
) -> RecordScan:
    """Check that `data` holds exactly `count` records from `start` on, and summarize them.

    To scan a very large batch in pieces, `first` is the index of the first record of a piece, and
    `is_last` is False unless the batch must end with the piece.

    `data` is the batch itself, or the decompressed records if `is_compressed`. ApiError with
    Kafka's code if the records are malformed. Appends to `suspects`, if given, the first
    MAX_SUSPECTS records that have no key or a timestamp outside of [oldest, newest].

    `check_form` is for records that are to be kept in a batch that Kafka would build again: those
    that Kafka would write differently count as not sequential.
    """
    end = len(data)
    position = start
    record_end = last_raw = null_keys = index = 0
    # A variable, because Cython makes a Python object of such a large literal.
    smallest = limit = 9223372036854775807
    largest = -1
    is_sequential = True
    is_inside = False  # of a record whose length is known not to reach beyond the end
    is_odd = False  # some field is not as Kafka writes it
    timestamp = base_timestamp
    try:
        for index in range(first, first + count):
            # The length of the record.
            is_inside = False
            raw = data[position]
            if raw < 128:
                position += 1
            else:
                second = data[position + 1]
                if second < 128:
                    is_odd |= second == 0
                    raw = raw & 127 | second << 7
                    position += 2
                else:
                    packed = _read_varint(data, position)
                    if packed == 0:
                        raise _endless_length(index, is_compressed)
                    is_odd |= _has_spare_byte(packed)
                    raw = packed >> 3
                    position += packed & 7
            if check_sizes:
                record_end = position + (raw >> 1)
                if raw & 1:
                    raise _invalid(index, "its length is negative")
                if record_end > end:
                    raise RecordBeyondEnd(index, first + count)
                is_inside = True

            # The attributes (one unused byte) and the timestamp delta, which is often that of the
            # record before.
            is_odd |= data[position] != 0
            raw = data[position + 1]
            if raw < 128:
                position += 2
            else:
                second = data[position + 2]
                if second < 128:
                    is_odd |= second == 0
                    raw = raw & 127 | second << 7
                    position += 3
                else:
                    packed = _varlong_size(data, position + 1)
                    if packed == 0:
                        raise _invalid(index, "its timestamp delta has more than ten bytes")
                    raw = _varlong(data, position + 1, packed)
                    second = data[position + packed]
                    is_odd |= second == 0 or (packed == 10 and second > 1)
                    position += 1 + packed
            if raw != last_raw:
                last_raw = raw
                timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))
                if timestamp > limit or timestamp < -limit:
                    timestamp = _wrapped(timestamp)
            if timestamp != -1:
                if timestamp > largest:
                    largest = timestamp
                if timestamp < smallest:
                    smallest = timestamp

            # The offset delta.
            raw = data[position]
            if raw < 128:
                position += 1
            else:
                second = data[position + 1]
                if second < 128:
                    is_odd |= second == 0
                    raw = raw & 127 | second << 7
                    position += 2
                else:
                    packed = _long_varint(data, position, index)
                    is_odd |= _has_spare_byte(packed)
                    raw = packed >> 3
                    position += packed & 7
            if raw != index << 1:
                is_sequential = False
            if suspects is not None and (
                data[position] & 1
                or (timestamp != -1 and (timestamp < oldest or timestamp > newest))
            ):
                _add_suspect(suspects, index, timestamp, raw, data[position] & 1 == 0)

            # The key and the value.
            raw = data[position]
            if raw < 128:
                position += 1
            else:
                second = data[position + 1]
                if second < 128:
                    is_odd |= second == 0
                    raw = raw & 127 | second << 7
                    position += 2
                else:
                    packed = _long_varint(data, position, index)
                    is_odd |= _has_spare_byte(packed)
                    raw = packed >> 3
                    position += packed & 7
            if raw & 1:
                null_keys += 1
                is_odd |= raw != 1
            else:
                position += raw >> 1
            raw = data[position]
            if raw < 128:
                position += 1
            else:
                second = data[position + 1]
                if second < 128:
                    is_odd |= second == 0
                    raw = raw & 127 | second << 7
                    position += 2
                else:
                    packed = _long_varint(data, position, index)
                    is_odd |= _has_spare_byte(packed)
                    raw = packed >> 3
                    position += packed & 7
            if raw & 1:
                is_odd |= raw != 1
            else:
                position += raw >> 1

            # The headers.
            raw = data[position]
            if raw == 0:
                position += 1
            else:
                if check_form and not is_odd:
                    is_odd = _are_headers_odd(data, position, index)
                position = _skip_headers(data, position, index)
            if check_sizes and position != record_end:
                raise _invalid(index, "its length is not that of its fields")
    except IndexError:
        if is_inside:
            raise _invalid(index, "its fields reach beyond its length") from None
        raise RecordBeyondEnd(index, first + count) from None
    if position > end:
        raise RecordBeyondEnd(first + count - 1, first + count)
    if is_last and position != end:
        raise _invalid(
            first + count - 1, "bytes follow it, but the header's count says it is the last"
        )
    if check_form and is_odd:
        is_sequential = False
    return smallest, largest, null_keys, is_sequential, position


def scan_in_pieces(
    data: memoryview,
    count: int,
    base_timestamp: int,
    check_sizes: bool,
    suspects: list[SuspectRecord],
    oldest: int,
    newest: int,
) -> RecordScan:
    """As `scan_records` of a compressed batch, in pieces, for a thread beside the event loop.

    A piece takes some milliseconds. Between two of them, other threads can run.
    """
    smallest, largest, null_keys, is_sequential, position = 9223372036854775807, -1, 0, True, 0
    first = 0
    while True:
        size = min(count - first, PIECE_RECORDS)
        is_last = first + size >= count
        part = scan_records(
            data,
            position,
            size,
            base_timestamp,
            True,
            check_sizes,
            suspects,
            oldest,
            newest,
            first,
            is_last,
            check_sizes,
        )
        smallest, largest = min(smallest, part[0]), max(largest, part[1])
        null_keys, is_sequential = null_keys + part[2], is_sequential and part[3]
        position = part[4]
        if is_last:
            return smallest, largest, null_keys, is_sequential, position
        first += size


def _add_suspect(
    suspects: list[SuspectRecord], index: int, timestamp: int, raw_delta: int, has_key: bool
) -> None:
    if len(suspects) < MAX_SUSPECTS:
        delta = raw_delta >> 1 if raw_delta & 1 == 0 else -(raw_delta >> 1) - 1
        suspects.append((index, timestamp, delta, has_key))


def _skip_headers(data: memoryview, position: int, index: int) -> int:
    """The position after the headers whose count is at `position`."""
    packed = _long_varint(data, position, index)
    raw = packed >> 3
    position += packed & 7
    # A header has at least two bytes; a count beyond the end must not cost a loop.
    if raw & 1:
        raise _invalid(index, "its number of headers is negative")
    if raw >> 1 > len(data) - position:
        raise IndexError
    for _ in range(raw >> 1):
        packed = _long_varint(data, position, index)
        raw_length = packed >> 3
        if raw_length & 1:
            raise _invalid(index, "a header has no key")
        position += (packed & 7) + (raw_length >> 1)
        packed = _long_varint(data, position, index)
        raw_length = packed >> 3
        position += packed & 7
        if not raw_length & 1:
            position += raw_length >> 1
    return position


def _are_headers_odd(data: memoryview, position: int, index: int) -> bool:
    """Whether Kafka would write the headers at `position` differently.

    It decodes their keys as text; here, text beyond ASCII counts as different.
    """
    packed = _long_varint(data, position, index)
    if _has_spare_byte(packed):
        return True
    raw = packed >> 3
    position += packed & 7
    if raw & 1 or raw >> 1 > len(data) - position:
        return False  # refused by `_skip_headers`
    for _ in range(raw >> 1):
        packed = _long_varint(data, position, index)
        position += packed & 7
        raw_length = packed >> 3
        if raw_length & 1:
            return False
        if _has_spare_byte(packed):
            return True
        for at in range(position, position + (raw_length >> 1)):
            if data[at] > 127:
                return True
        position += raw_length >> 1
        packed = _long_varint(data, position, index)
        position += packed & 7
        raw_length = packed >> 3
        if _has_spare_byte(packed) or (raw_length & 1 and raw_length != 1):
            return True
        if not raw_length & 1:
            position += raw_length >> 1
    return False


def _has_spare_byte(packed: int) -> bool:
    """Whether a varint as `_read_varint` gives it could be a byte shorter."""
    size = packed & 7
    return size > 1 and packed >> 7 * size - 4 == 0


def _long_varint(data: memoryview, position: int, index: int) -> int:
    """As `_read_varint`, but INVALID_RECORD if the varint does not end after five bytes."""
    packed = _read_varint(data, position)
    if packed == 0:
        raise _invalid(index, "a varint has more than five bytes")
    return packed


def _read_varint(data: memoryview, position: int) -> int:
    """The unsigned 32 bits of a varint times 8, plus its number of bytes; 0 if it has over five.

    One number instead of a tuple, so that the compiled form allocates nothing.
    """
    raw = 0
    for size in range(5):
        byte = data[position + size]
        raw |= (byte & 127) << 7 * size
        if byte < 128:
            return (raw & 0xFFFFFFFF) << 3 | size + 1
    return 0


def _varlong_size(data: memoryview, position: int) -> int:
    """The number of bytes of a varlong; 0 if it has more than ten."""
    for size in range(10):
        if data[position + size] < 128:
            return size + 1
    return 0


def _varlong(data: memoryview, position: int, size: int) -> int:
    """The unsigned 64 bits of a varlong of `size` bytes."""
    raw = 0
    for at in range(size):
        byte = data[position + at]
        raw |= (byte & 127) << 7 * at
    return raw & 0xFFFFFFFFFFFFFFFF


def _wrapped(timestamp: int) -> int:
    """The sum of two int64 as Java has it; in C it has wrapped already and stays as it is."""
    return (timestamp + 2**63) % 2**64 - 2**63


def _invalid(index: int, problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"invalid record batch: record {index}: {problem}")


def _endless_length(index: int, is_compressed: bool) -> ApiError:
    problem = f"invalid record batch: record {index}: its length has more than five bytes"
    code = ErrorCode.INVALID_RECORD if is_compressed else ErrorCode.UNKNOWN_SERVER_ERROR
    return ApiError(code, problem)
