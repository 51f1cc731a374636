"""From the bytes of a produce request (or a leader's answer) to what is written, without copying.

Header-deep on the hot path: size, magic, crc of the whole batch, counts, sequences, timestamps.
Records are decoded only where Kafka must too: a compacted topic wants keys, a limit on old
timestamps concerns every record, another codec or an old format means a new batch.

A leader's stamp (base offset, leader epoch) lies in the first 16 bytes, outside of the crc: they
are written from a small buffer of their own, the rest from where the request was received.
LogAppendTime changes the header under the crc, so all 61 bytes of it are new, the crc too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.log.config import LOG_APPEND_TIME, MAX_LONG, PRODUCER, LogConfig
from broker.log.files import Buffer
from broker.records.batch import Batch, BatchHeader, check_crc, iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.convert import up_convert
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_MASK,
    CURRENT_MAGIC,
    DEFINED_ATTRIBUTES_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MIN_RECORD_SIZE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BytesLike,
    Codec,
    TimestampType,
)
from broker.records.record import RecordTuple

_STAMP: Final = Struct(">qii")
_STAMP_SIZE: Final = 16
_SHOWN_ERRORS: Final = 3


class AppendOrigin(Enum):
    """Who appends, which decides what is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"  # the broker's own group and transaction coordinators
    REPLICATION = "replication"  # a follower copying its leader


# Names of their own, because to look up a member in its enum takes as long as several calls.
CLIENT: Final = AppendOrigin.CLIENT
REPLICATION: Final = AppendOrigin.REPLICATION
_ZSTD: Final = int(Codec.ZSTD)
_PLAIN_ATTRIBUTES: Final = CODEC_MASK | TRANSACTIONAL_MASK

_new: Final = tuple.__new__
"""Makes a NamedTuple of a tuple with all its fields, in half the time of the class itself."""


class LogAppendInfo(NamedTuple):
    """What became of an append; for a duplicate, of the batch it repeats.

    `log_append_time` is -1 unless the topic's timestamps are those of appending.
    """

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    size_in_bytes: int


class RecordError(NamedTuple):
    """What is wrong with one record of a batch, counted from 0."""

    batch_index: int
    message: str


class InvalidRecords(ApiError):
    """Single records were refused; `record_errors` says which (produce version 8 tells clients)."""

    def __init__(self, code: ErrorCode, record_errors: list[RecordError]) -> None:
        shown = "; ".join(
            f"record {index}: {message}" for index, message in record_errors[:_SHOWN_ERRORS]
        )
        super().__init__(code, f"{len(record_errors)} records were refused: {shown}")
        self.record_errors = record_errors


class UnexpectedAppendOffset(ApiError):
    """A leader's batch begins below the follower's log end offset."""

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"expected offsets from {log_end_offset}, found {first_offset} to {last_offset}",
        )
        self.first_offset = first_offset
        self.last_offset = last_offset


class LeaderStamp(NamedTuple):
    """What a leader adds to a batch."""

    offset: int
    leader_epoch: int
    now_ms: int


@dataclass(slots=True, eq=False)
class Prepared:
    """An append that passed its checks: the bytes to write, and what is in them.

    `batches` are as they came, `headers` as they will read: one for each.
    """

    buffers: list[Buffer]
    size: int
    batches: list[Batch]
    headers: list[BatchHeader]
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int


def read_plain_header(view: memoryview) -> tuple[int, ...] | None:
    """The header of the one batch in `view`, if it passes every check and needs no change.

    So it is with nearly all that clients send: `analyze` and `prepare_as_leader` would find nothing
    to do. None says that they must look, not that something is wrong.
    (The fields of BatchHeader, not one: to make it takes as long as to check it.)
    """
    size = len(view)
    if size < HEADER_SIZE:
        return None
    fields: tuple[int, ...] = HEADER.unpack_from(view)
    offset, length, _, magic, crc, attributes, last_delta, _, _, _, _, _, count = fields
    codec = attributes & CODEC_MASK
    if (
        magic != CURRENT_MAGIC
        or offset
        or length + LOG_OVERHEAD != size
        or attributes & ~_PLAIN_ATTRIBUTES
        or codec > _ZSTD
        or last_delta < 0
        or count != last_delta + 1
        or (not codec and count * MIN_RECORD_SIZE > size - HEADER_SIZE)
        or crc32c(view[ATTRIBUTES_POSITION:]) != crc
    ):
        return None
    return fields


def stamped(view: memoryview, offset: int, leader_epoch: int) -> list[Buffer]:
    """The batch in `view` with the offset and the epoch that its leader gives it."""
    length = len(view) - LOG_OVERHEAD
    return [_STAMP.pack(offset, length, leader_epoch), view[_STAMP_SIZE:]]


def analyze(records: BytesLike, max_batch_bytes: int, origin: AppendOrigin) -> list[Batch]:
    """The whole batches of `records`, each checked for size and crc; a cut tail is left out."""
    view = memoryview(records)
    batches = _only_batch(view) or list(iterate_batches(view))
    for batch in batches:
        header, end = batch.header, batch.end_position
        if header.base_offset and origin is CLIENT and header.magic == CURRENT_MAGIC:
            raise _invalid(f"base offset {header.base_offset}, not 0")
        if end - batch.position > max_batch_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a batch of {batch.size_in_bytes} bytes is larger than {max_batch_bytes}",
            )
        if (
            header.magic < CURRENT_MAGIC
            or crc32c(view[batch.position + ATTRIBUTES_POSITION : end]) != header.crc
        ):
            check_crc(batch)  # the way of the old formats, and of the error
    return batches


def _only_batch(view: memoryview) -> list[Batch]:
    """The batch, if `view` is exactly one of format 2, as nearly every request is; else nothing."""
    if len(view) < HEADER_SIZE or view[MAGIC_POSITION] != CURRENT_MAGIC:
        return []
    header = _new(BatchHeader, HEADER.unpack_from(view))
    is_only = header.batch_length + LOG_OVERHEAD == len(view)
    return [Batch(view, 0, header)] if is_only else []


def _invalid(problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"invalid record batch: {problem}")


# --- as a follower ------------------------------------------------------------------------------


def prepare_as_follower(batches: list[Batch], records: BytesLike, log_end_offset: int) -> Prepared:
    """Take the leader's batches as they are; UnexpectedAppendOffset if they begin too low."""
    first, last = batches[0], batches[-1]
    if first.header.base_offset < log_end_offset:
        raise UnexpectedAppendOffset(first.header.base_offset, last.last_offset, log_end_offset)
    last_offset = -1
    for batch in batches:
        if batch.last_offset <= last_offset:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"offsets out of order: {batch.last_offset} after {last_offset}",
            )
        last_offset = batch.last_offset
    size = last.end_position - first.position
    return Prepared(
        [memoryview(records)[:size]],
        size,
        batches,
        [batch.header for batch in batches],
        first.header.base_offset,
        last_offset,
        max(batch.max_timestamp for batch in batches),
        NO_TIMESTAMP,
    )


# --- as the leader ------------------------------------------------------------------------------


def prepare_as_leader(
    batches: list[Batch], stamp: LeaderStamp, config: LogConfig, origin: AppendOrigin
) -> Prepared:
    """Check the batches and stamp them; ApiError if a client may not write them.

    Format 2 and compressed sets are one batch per append, as every client sends them.
    """
    first, header = batches[0], batches[0].header
    if len(batches) > 1:
        _check_set(batches)
    if origin is CLIENT:
        _check_client_batch(header)
    if header.magic != CURRENT_MAGIC or config.compression_type != PRODUCER:
        codec = _target_codec(first, config)
        if header.magic != CURRENT_MAGIC or codec != first.codec:
            return _prepare_rewritten(batches, stamp, config, codec)
    _check_timestamp_type(header, config)
    if (
        config.message_timestamp_before_max_ms < MAX_LONG
        or header.max_timestamp - stamp.now_ms > config.message_timestamp_after_max_ms
        or config.is_compacted
    ):
        _check_records([first], stamp.now_ms, config)
    return _prepare_stamped(first, stamp, config)


def _check_set(batches: list[Batch]) -> None:
    """Several batches are only what very old clients send: a set of plain messages."""
    first = batches[0]
    if first.magic >= CURRENT_MAGIC or first.codec != Codec.NONE:
        raise _invalid(f"{len(batches)} batches where one is expected")
    for batch in batches:
        if batch.magic != first.magic:
            raise _invalid(f"magic {batch.magic} after magic {first.magic}")


def _check_client_batch(header: BatchHeader) -> None:
    """What a client of format 2 must not send."""
    # Taken apart at once: each name looked up in the header would cost as much as all of this.
    _, length, _, magic, _, attributes, last_delta, _, _, producer_id, _, sequence, count = header
    if magic != CURRENT_MAGIC:
        return
    if last_delta < 0:
        raise _invalid(f"last offset delta {last_delta}")
    if count != last_delta + 1:
        raise _invalid(f"{count} records for {last_delta + 1} offsets")
    if attributes & CONTROL_MASK:
        raise _invalid("clients may not write control records")
    codec = attributes & CODEC_MASK
    if codec > _ZSTD:
        raise _invalid(f"there is no codec {codec}")
    room = length + LOG_OVERHEAD - HEADER_SIZE
    if not codec and count * MIN_RECORD_SIZE > room:
        raise _invalid(f"{count} records in {room} bytes")
    if sequence < 0 <= producer_id:
        raise _invalid(f"sequence {sequence} with a producer id")


def _target_codec(batch: Batch, config: LogConfig) -> Codec:
    if config.compression_type == PRODUCER or batch.is_control:
        return batch.codec
    name = config.compression_type
    return Codec.NONE if name == "uncompressed" else Codec[name.upper()]


def _check_timestamp_type(header: BatchHeader, config: LogConfig) -> None:
    is_broker_time = config.message_timestamp_type == LOG_APPEND_TIME
    if is_broker_time and header.attributes & TIMESTAMP_TYPE_MASK:
        message = "a producer may not set the timestamp type LogAppendTime"
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, [RecordError(0, message)])


def _check_records(batches: list[Batch], now_ms: int, config: LogConfig) -> None:
    """InvalidRecords names the records without key or with a timestamp out of bounds."""
    no_key, bad_time = [], []
    before, after = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    if config.message_timestamp_type == LOG_APPEND_TIME:
        before = after = MAX_LONG  # the producer's times are overwritten
    for index, (_, timestamp, key, _, _) in enumerate(_records_of(batches)):
        if config.is_compacted and key is None:
            no_key.append(RecordError(index, "a compacted topic accepts no record without key"))
        elif timestamp != NO_TIMESTAMP and not -after <= now_ms - timestamp <= before:
            message = f"timestamp {timestamp} is not in [{now_ms - before}, {now_ms + after}]"
            bad_time.append(RecordError(index, message))
    if bad_time:
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, sorted(no_key + bad_time))
    if no_key:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, no_key)


def _records_of(batches: list[Batch]) -> Iterator[RecordTuple]:
    """Every record; the crc being right, format 2 with unreadable ones was made so: INVALID_RECORD.

    The old formats have a crc in every message, and inner ones are only seen here.
    """
    try:
        for batch in batches:
            yield from batch.record_tuples()
    except CorruptRecord as error:
        if batches[0].magic < CURRENT_MAGIC:
            raise
        raise _invalid(error.message) from error


def _prepare_stamped(batch: Batch, stamp: LeaderStamp, config: LogConfig) -> Prepared:
    """The batch as it came, behind a new stamp."""
    header, view = batch.header, batch.view
    offset, leader_epoch, now_ms = stamp
    attributes, max_timestamp, append_time = header.attributes, header.max_timestamp, NO_TIMESTAMP
    if config.message_timestamp_type == LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
        max_timestamp = append_time = now_ms
    elif attributes & TIMESTAMP_TYPE_MASK:
        attributes &= ~TIMESTAMP_TYPE_MASK
    if attributes == header.attributes:
        buffers = stamped(view, offset, leader_epoch)
        final = _new(BatchHeader, (offset, header.batch_length, leader_epoch, *header[3:]))
    else:
        final = header._replace(
            base_offset=offset,
            partition_leader_epoch=leader_epoch,
            attributes=attributes & DEFINED_ATTRIBUTES_MASK,
            max_timestamp=max_timestamp,
        )
        final, head = _with_crc(final, view)
        buffers = [head, view[HEADER_SIZE:]]
    return Prepared(
        buffers,
        header.batch_length + LOG_OVERHEAD,
        [batch],
        [final],
        offset,
        offset + header.last_offset_delta,
        max_timestamp,
        append_time,
    )


def _with_crc(header: BatchHeader, view: memoryview) -> tuple[BatchHeader, bytes]:
    """The header with the crc of its fields and of the records in `view`, and its bytes."""
    packed = HEADER.pack(*header)
    crc = crc32c(view[HEADER_SIZE:], crc32c(packed[ATTRIBUTES_POSITION:]))
    header = header._replace(crc=crc)
    return header, HEADER.pack(*header)


def _prepare_rewritten(
    batches: list[Batch], stamp: LeaderStamp, config: LogConfig, codec: Codec
) -> Prepared:
    """A new batch of format 2 with the records of `batches`, compressed as the topic wants it."""
    _check_timestamp_type(batches[0].header, config)
    _check_records(batches, stamp.now_ms, config)
    header = batches[0].header
    is_broker_time = config.message_timestamp_type == LOG_APPEND_TIME
    append_time = stamp.now_ms if is_broker_time else NO_TIMESTAMP
    settings = BatchSettings(
        codec=codec,
        compression_level=_level(codec, config),
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if is_broker_time else TimestampType.CREATE_TIME
        ),
        append_time=append_time,
        partition_leader_epoch=stamp.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
    data = _rebuild(batches, stamp.offset, settings)
    batch = next(iterate_batches(data))
    if batch.size_in_bytes > config.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the rewritten batch of {batch.size_in_bytes} bytes is larger than "
            f"{config.max_message_bytes}",
        )
    return Prepared(
        [data],
        len(data),
        [batch],
        [batch.header],
        stamp.offset,
        batch.last_offset,
        batch.max_timestamp,
        append_time,
    )


def _rebuild(batches: list[Batch], offset: int, settings: BatchSettings) -> bytes:
    if batches[0].magic < CURRENT_MAGIC:
        return up_convert(batches, offset, settings)
    rows = enumerate(batches[0].record_tuples(), start=offset)
    return build_batch([(number, *row[1:]) for number, row in rows], settings)


def _level(codec: Codec, config: LogConfig) -> int | None:
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec)
