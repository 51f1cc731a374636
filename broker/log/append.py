"""The full path of an append: from received bytes to the buffers to write, without copying.

Every batch is checked for size, magic and crc; those of clients are validated record by record
(`validator`). Records are decoded only if the batch must be rebuilt: the topic has another
codec, or the client sent an old format.

The leader sets base offset and leader epoch, which are in the first 16 bytes and not covered by the
crc: these are written from a small buffer, the rest from the buffer of the request. LogAppendTime
and a wrong max timestamp change fields covered by the crc, so the whole header is written again.

A batch can take seconds to validate or to rewrite: a few kilobytes may decompress to 256 MiB. So
on the event loop HeavyBatch is raised for those that may; a thread validates and rewrites them
(`validated_batch`), and the result is appended as VALIDATED_CLIENT.
"""

from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.log.config import LOG_APPEND_TIME, PRODUCER, LogConfig
from broker.log.files import Buffer
from broker.log.header_check import check_base_offset, check_client_header, check_codec
from broker.log.validator import (
    HeavyBatch,
    check_message_set,
    check_old_records,
    validate_records,
)
from broker.records.batch import Batch, BatchHeader, check_crc, iterate_batches
from broker.records.builder import BatchSettings, build_batch, recompress
from broker.records.checksum import crc32c
from broker.records.convert import up_convert
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CURRENT_MAGIC,
    DEFINED_ATTRIBUTES_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    BytesLike,
    Codec,
    TimestampType,
)

_STAMP: Final = Struct(">qii")
_STAMP_SIZE: Final = 16


class AppendOrigin(Enum):
    """The origin of an append, which decides what is checked."""

    CLIENT = "client"
    VALIDATED_CLIENT = "validated client"  # a client's batch that `validated_batch` returned
    COORDINATOR = "coordinator"  # the broker's own group and transaction coordinators
    REPLICATION = "replication"  # a follower copying its leader


# Module constants, because looking up a member of an enum takes as long as several calls.
CLIENT: Final = AppendOrigin.CLIENT
REPLICATION: Final = AppendOrigin.REPLICATION
CLIENTS: Final = frozenset({AppendOrigin.CLIENT, AppendOrigin.VALIDATED_CLIENT})

_LIGHT_BYTES: Final = 16 * 1024
"""Records up to this size can be rewritten on the event loop, if they are not compressed."""

_new: Final = tuple.__new__
"""Makes a NamedTuple from a tuple of all its fields, in half the time of its constructor."""


class LogAppendInfo(NamedTuple):
    """The result of an append; for a retry, that of the batch it repeats.

    `log_append_time` is -1 unless the topic has LogAppendTime.
    """

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    size_in_bytes: int


class UnexpectedAppendOffset(ApiError):
    """A leader's batch starts below the follower's log end offset."""

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"expected offsets from {log_end_offset}, found {first_offset} to {last_offset}",
        )
        self.first_offset = first_offset
        self.last_offset = last_offset


class LeaderStamp(NamedTuple):
    """What a leader sets in a batch, and the partition's name for error messages."""

    offset: int
    leader_epoch: int
    now_ms: int
    topic_partition: object


@dataclass(slots=True, eq=False)
class Prepared:
    """An append that passed its checks: the bytes to write and what they contain.

    `batches` are as received, `headers` as they will be stored, one for each batch.
    """

    buffers: list[Buffer]
    size: int
    batches: list[Batch]
    headers: list[BatchHeader]
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int


def stamped(view: memoryview, offset: int, leader_epoch: int) -> list[Buffer]:
    """The batch in `view` with this base offset and leader epoch, as two buffers."""
    length = len(view) - LOG_OVERHEAD
    return [_STAMP.pack(offset, length, leader_epoch), view[_STAMP_SIZE:]]


def analyze(records: BytesLike, max_batch_bytes: int, origin: AppendOrigin) -> list[Batch]:
    """The batches of `records`, each checked for size, crc and codec; a cut tail is left out."""
    view = memoryview(records)
    batches = _only_batch(view) or list(iterate_batches(view))
    for batch in batches:
        header, end = batch.header, batch.end_position
        if origin is CLIENT:
            check_base_offset(header)
        if end - batch.position > max_batch_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a batch of {batch.size_in_bytes} bytes is larger than {max_batch_bytes}",
            )
        if (
            header.magic < CURRENT_MAGIC
            or crc32c(view[batch.position + ATTRIBUTES_POSITION : end]) != header.crc
        ):
            check_crc(batch)  # for the old formats, and for the error message
        check_codec(header)
    return batches


def is_large_message_set(records: BytesLike) -> bool:
    """Whether the bytes are many messages of an old format, which take long even to count."""
    return len(records) > _LIGHT_BYTES and records[MAGIC_POSITION] < CURRENT_MAGIC


def _only_batch(view: memoryview) -> list[Batch]:
    """The batch, if `view` is exactly one of format 2, the usual case; else an empty list."""
    if len(view) < HEADER_SIZE or view[MAGIC_POSITION] != CURRENT_MAGIC:
        return []
    header = _new(BatchHeader, HEADER.unpack_from(view))
    is_only = header.batch_length + LOG_OVERHEAD == len(view)
    return [Batch(view, 0, header)] if is_only else []


# --- as a follower ------------------------------------------------------------------------------


def prepare_as_follower(batches: list[Batch], records: BytesLike, log_end_offset: int) -> Prepared:
    """Accept the leader's batches unchanged; UnexpectedAppendOffset if they start too low."""
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


def validated_batch(
    records: BytesLike, config: LogConfig, now_ms: int, topic_partition: object
) -> bytes:
    """A client's batch, validated, and rewritten if the topic requires it; for a thread.

    To be appended with the origin VALIDATED_CLIENT. ApiError if it must be refused.
    """
    batches = analyze(records, config.max_message_bytes, CLIENT)
    stamp = LeaderStamp(0, NO_PARTITION_LEADER_EPOCH, now_ms, topic_partition)
    prepared = prepare_as_leader(batches, stamp, config, CLIENT, is_off_loop=True)
    return b"".join(prepared.buffers)


def prepare_as_leader(
    batches: list[Batch],
    stamp: LeaderStamp,
    config: LogConfig,
    origin: AppendOrigin,
    *,
    is_off_loop: bool = False,
) -> Prepared:
    """Validate the batches and assign their offsets; ApiError if they must be refused.

    Several in one append are allowed only as uncompressed messages of an old format. HeavyBatch,
    unless `is_off_loop`, if this may take long.
    """
    first, header = batches[0], batches[0].header
    if len(batches) > 1:
        check_message_set(batches)
    if origin is CLIENT:
        check_client_header(header)
    codec = _target_codec(first, config)
    is_rewritten = header.magic != CURRENT_MAGIC or codec != first.codec
    if is_rewritten and origin is CLIENT and not is_off_loop and _is_heavy(batches):
        raise HeavyBatch
    max_timestamp, can_keep_records = header.max_timestamp, False
    if header.magic != CURRENT_MAGIC:
        check_old_records(batches, config, stamp.now_ms, stamp.topic_partition)
    elif origin is CLIENT:
        max_timestamp, can_keep_records = validate_records(
            first,
            config,
            stamp.now_ms,
            stamp.topic_partition,
            is_rewritten=is_rewritten,
            is_off_loop=is_off_loop,
        )
    if is_rewritten:
        return _prepare_rewritten(
            batches, stamp, config, codec, max_timestamp if can_keep_records else None
        )
    return _prepare_stamped(first, max_timestamp, stamp, config)


def _is_heavy(batches: list[Batch]) -> bool:
    """Whether rewriting may take long: compressed records are of unknown size."""
    return (
        batches[0].codec != Codec.NONE
        or batches[-1].end_position - batches[0].position > _LIGHT_BYTES
    )


def _target_codec(batch: Batch, config: LogConfig) -> Codec:
    if config.compression_type == PRODUCER or batch.is_control:
        return batch.codec
    name = config.compression_type
    return Codec.NONE if name == "uncompressed" else Codec[name.upper()]


def _prepare_stamped(
    batch: Batch, max_timestamp: int, stamp: LeaderStamp, config: LogConfig
) -> Prepared:
    """The batch with its new base offset and leader epoch.

    As in Kafka, the header is written again, with a new crc, if its timestamp type is not that of
    the topic or its max timestamp is not that of its records.
    """
    header, view = batch.header, batch.view
    offset, leader_epoch, now_ms, _ = stamp
    attributes, append_time = header.attributes, NO_TIMESTAMP
    if config.message_timestamp_type == LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
        max_timestamp = append_time = now_ms
    elif attributes & TIMESTAMP_TYPE_MASK:
        attributes &= ~TIMESTAMP_TYPE_MASK
    if attributes == header.attributes and max_timestamp == header.max_timestamp:
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
    batches: list[Batch],
    stamp: LeaderStamp,
    config: LogConfig,
    codec: Codec,
    kept_max_timestamp: int | None,
) -> Prepared:
    """A new batch of format 2 with the records of `batches`, in the topic's codec.

    If `kept_max_timestamp` is given, it is that of the records, and they need no other change.
    """
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
    try:
        data = None
        if kept_max_timestamp is not None:
            data = recompress(batches[0], stamp.offset, kept_max_timestamp, settings)
        if data is None:
            data = _rebuild(batches, stamp.offset, settings)
    except ValueError as error:  # such as a producer id without an epoch
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
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
