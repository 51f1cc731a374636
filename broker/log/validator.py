"""Validates the batches of clients as Kafka's LogValidator does: the same verdicts, the same codes.

A batch is accepted exactly when Kafka 3.9 accepts it. A valid crc proves only that it arrived
as it was sent: the records inside may still be cut, miscounted or not decompressible, and a
consumer that meets such a batch cannot get past it. So every client batch is walked record by
record (`records.scan`), compressed ones after decompression. Batches from leaders and from this
broker's own coordinators are not: the leader has validated them.

Defects of the batch as a whole are an ApiError: INVALID_RECORD mostly, and UNKNOWN_SERVER_ERROR in
the cases where Kafka fails with an unexpected exception (bytes that cannot be decompressed, a codec
that does not exist). Records that the topic's settings refuse are InvalidRecords, which names them.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.java_strings import java_long
from broker.log.config import CREATE_TIME, MAX_LONG, LogConfig
from broker.log.header_check import invalid_batch
from broker.records.batch import Batch
from broker.records.compression import Undecompressible, decompressed
from broker.records.damaged import readable_prefix
from broker.records.layout import (
    CODEC_MASK,
    CURRENT_MAGIC,
    HEADER_SIZE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    Codec,
)
from broker.records.legacy import InvalidMessageSet, read_columns
from broker.records.record import RecordColumns
from broker.records.scan import (
    MAX_SUSPECTS,
    RecordBeyondEnd,
    RecordScan,
    SuspectRecord,
    scan_in_pieces,
    scan_records,
)

_SHOWN_ERRORS: Final = 3
_CODECS: Final = tuple(Codec)
_ON_LOOP_BYTES: Final = 1024 * 1024
"""Records that decompress to more than this are validated in a thread."""
_NO_TIMESTAMPS: Final = MAX_LONG
"""What a scan gives as the smallest timestamp if no record has one."""


class HeavyBatch(Exception):
    """The batch may take too long for the event loop: `append.validated_batch` in a thread.

    Nothing has changed.
    """


class RecordError(NamedTuple):
    """What is wrong with one record of a batch, counted from 0."""

    batch_index: int
    message: str


class InvalidRecords(ApiError):
    """Single records were refused; `record_errors` says which (KIP-467, Produce version 8)."""

    def __init__(self, code: ErrorCode, record_errors: list[RecordError]) -> None:
        if code == ErrorCode.INVALID_TIMESTAMP:
            message = "One or more records have been rejected due to invalid timestamp"
        else:
            shown = ", ".join(
                f"RecordError(batchIndex={index}, message='{problem}')"
                for index, problem in record_errors[:_SHOWN_ERRORS]
            )
            message = (
                f"One or more records have been rejected due to {len(record_errors)} record errors "
                f"in total, and only showing the first three errors at most: [{shown}]"
            )
        super().__init__(code, message)
        self.record_errors = record_errors


def check_message_set(batches: list[Batch]) -> None:
    """Several batches are allowed only as a set of uncompressed messages of one old format."""
    first = batches[0]
    if first.magic >= CURRENT_MAGIC or any(batch.codec != Codec.NONE for batch in batches):
        raise invalid_batch(f"{len(batches)} batches where one is expected")
    for batch in batches:
        if batch.magic != first.magic:
            raise invalid_batch(f"magic {batch.magic} after magic {first.magic}")


def largest_timestamp(view: memoryview, attributes: int, base_timestamp: int, count: int) -> int:
    """Validate the records of a batch that is stored as it is; their largest timestamp, or -1.

    For the fast path: topic settings that concern single records are not checked. HeavyBatch if it
    may take long.
    """
    codec = attributes & CODEC_MASK
    if not codec:
        return scan_records(view, HEADER_SIZE, count, base_timestamp, False, True)[1]
    scan = _scan_compressed(_CODECS[codec], view[HEADER_SIZE:], count, base_timestamp)
    _check_offset_deltas(scan)
    return scan[1]


def validate_records(
    batch: Batch,
    config: LogConfig,
    now_ms: int,
    topic_partition: object,
    *,
    is_rewritten: bool,
    is_off_loop: bool = False,
) -> tuple[int, bool]:
    """Validate the records of a client's format 2 batch.

    Returns their largest timestamp, or -1, and whether they can be kept as they are in a batch
    that is rewritten. HeavyBatch, unless `is_off_loop`, if it may take long.

    `is_rewritten` says that the topic has another codec than the batch, so that the batch is made
    again from its records: only then does Kafka compare record sizes, and refuse times below -1.
    """
    header = batch.header
    oldest = max(now_ms - config.message_timestamp_before_max_ms, -MAX_LONG)
    newest = min(now_ms + config.message_timestamp_after_max_ms, MAX_LONG)
    suspects: list[SuspectRecord] = []
    is_create_time = config.message_timestamp_type == CREATE_TIME
    if header.attributes & TIMESTAMP_TYPE_MASK:
        # The client claims LogAppendTime: the header's max timestamp is that of every record, so
        # all are suspect or none is.
        scan = _scan(batch, suspects, (MAX_LONG, -MAX_LONG), is_rewritten, is_off_loop)
        smallest = largest = header.max_timestamp
        if not is_create_time or largest == NO_TIMESTAMP:
            raise _wrong_timestamp_type(header.records_count)
        suspects = [(index, largest, offset, has) for index, _, offset, has in suspects]
    else:
        scan = _scan(batch, suspects, (oldest, newest), is_rewritten, is_off_loop)
        smallest, largest = scan[:2]
    has_bad_times = is_create_time and (
        largest > newest or (smallest != _NO_TIMESTAMPS and smallest < oldest)
    )
    if has_bad_times or (scan[2] and config.is_compacted):
        _check_suspects(suspects, config, now_ms, topic_partition)
    if header.attributes & CODEC_MASK and not is_rewritten:
        _check_offset_deltas(scan)
    if is_rewritten and smallest < NO_TIMESTAMP:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"invalid negative timestamp {smallest}")
    return largest, scan[3] and not header.attributes & TIMESTAMP_TYPE_MASK


def _scan(
    batch: Batch,
    suspects: list[SuspectRecord],
    times: tuple[int, int],
    is_rewritten: bool,
    is_off_loop: bool,
) -> RecordScan:
    header, view = batch.header, batch.view
    count, base_timestamp = header.records_count, header.base_timestamp
    oldest, newest = times
    if not header.attributes & CODEC_MASK:
        return scan_records(
            view,
            HEADER_SIZE,
            count,
            base_timestamp,
            False,
            True,
            suspects,
            oldest,
            newest,
            check_form=is_rewritten,
        )
    if not is_off_loop:
        with _decompressed_on_loop(batch.codec, view[HEADER_SIZE:]) as records:
            return scan_records(
                records, 0, count, base_timestamp, True, is_rewritten, suspects, oldest, newest
            )
    try:
        with decompressed(batch.codec, view[HEADER_SIZE:]) as records:
            return scan_in_pieces(
                records, count, base_timestamp, is_rewritten, suspects, oldest, newest
            )
    except Undecompressible as error:
        _check_before_damage(batch, is_rewritten)
        raise undecompressible(error) from error


def _check_before_damage(batch: Batch, is_rewritten: bool) -> None:
    """INVALID_RECORD if a record that precedes the damage in the stream is malformed."""
    header = batch.header
    found = readable_prefix(batch.codec, batch.view[HEADER_SIZE:])
    with suppress(RecordBeyondEnd):
        scan_records(
            memoryview(found), 0, header.records_count, header.base_timestamp, True, is_rewritten
        )


def _scan_compressed(codec: Codec, data: memoryview, count: int, base_timestamp: int) -> RecordScan:
    with _decompressed_on_loop(codec, data) as records:
        return scan_records(records, 0, count, base_timestamp, True, False)


@contextmanager
def _decompressed_on_loop(codec: Codec, data: memoryview) -> Iterator[memoryview]:
    """The records, if they are small. A thread decides whether they are large or corrupt."""
    try:
        with decompressed(codec, data, _ON_LOOP_BYTES) as records:
            yield records
    except Undecompressible:
        raise HeavyBatch from None


def undecompressible(error: Undecompressible) -> ApiError:
    """UNKNOWN_SERVER_ERROR, as in Kafka, for bytes that their codec does not read."""
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot decompress the batch: {error.message}")


def _check_offset_deltas(scan: RecordScan) -> None:
    """Kafka rewrites such a batch from records whose keys it has skipped, and fails."""
    if not scan[3]:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "compressed batch: the offset deltas are not 0, 1, …",
        )


def _wrong_timestamp_type(count: int) -> InvalidRecords:
    message = "Invalid timestamp type. Producer should not set timestamp type to LogAppendTime."
    errors = [RecordError(index, message) for index in range(min(count, MAX_SUSPECTS))]
    return InvalidRecords(ErrorCode.INVALID_TIMESTAMP, errors)


def _check_suspects(
    suspects: list[SuspectRecord], config: LogConfig, now_ms: int, topic_partition: object
) -> None:
    """InvalidRecords names the records without a key or with a timestamp out of range."""
    errors = []
    code = ErrorCode.INVALID_RECORD
    for index, timestamp, offset, has_key in suspects:
        if config.is_compacted and not has_key:
            errors.append(_keyless(index, topic_partition))
        elif is_time_out_of_range(timestamp, config, now_ms):
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(_out_of_range(index, timestamp, offset, config, now_ms))
    if errors:
        raise InvalidRecords(code, errors)


def check_old_records(
    batches: list[Batch], config: LogConfig, now_ms: int, topic_partition: object
) -> None:
    """Check the messages of an old client: their crcs inside of a wrapper, keys and timestamps."""
    errors = []
    code = ErrorCode.INVALID_RECORD
    is_wrong_type = bool(batches[0].header.attributes & TIMESTAMP_TYPE_MASK and batches[0].magic)
    index = 0
    for batch in batches:
        columns = _read_old(batch)
        rows = zip(columns.offsets, columns.timestamps, columns.key_lengths, strict=True)
        for offset, timestamp, key_length in rows:
            is_checked = config.message_timestamp_type == CREATE_TIME and timestamp != NO_TIMESTAMP
            if config.is_compacted and key_length < 0:
                errors.append(_keyless(index, topic_partition))
            elif is_checked and is_time_out_of_range(timestamp, config, now_ms):
                code = ErrorCode.INVALID_TIMESTAMP
                errors.append(_out_of_range(index, timestamp, offset, config, now_ms))
            elif not is_checked and is_wrong_type:
                raise _wrong_timestamp_type(1)
            index += 1
    if errors:
        raise InvalidRecords(code, errors[:MAX_SUSPECTS])


def _read_old(batch: Batch) -> RecordColumns:
    try:
        return read_columns(batch.view, check_inner_crcs=True)
    except Undecompressible as error:
        raise undecompressible(error) from error
    except InvalidMessageSet as error:
        raise invalid_batch(error.message) from error


def is_time_out_of_range(timestamp: int, config: LogConfig, now_ms: int) -> bool:
    """Whether a record's time is too old or too far ahead; the differences wrap as in Java."""
    if config.message_timestamp_type != CREATE_TIME or timestamp == NO_TIMESTAMP:
        return False
    age = java_long(now_ms - timestamp)
    return (
        age > config.message_timestamp_before_max_ms
        or java_long(-age) > config.message_timestamp_after_max_ms
    )


def _keyless(index: int, topic_partition: object) -> RecordError:
    return RecordError(
        index,
        f"Compacted topic cannot accept message without key in topic partition {topic_partition}",
    )


def _out_of_range(
    index: int, timestamp: int, offset: int, config: LogConfig, now_ms: int
) -> RecordError:
    oldest = java_long(now_ms - config.message_timestamp_before_max_ms)
    newest = java_long(now_ms + config.message_timestamp_after_max_ms)
    return RecordError(
        index,
        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
        f"The timestamp should be within [{oldest}, {newest}]",
    )
