"""Conversion between record formats, for old consumers (down) and old producers (up).

Down (`down_convert`, a Fetch of version 0 or 1 gets format 0, of 2 or 3 format 1): batch by batch;
control batches, headers, producer and transaction fields are dropped; offsets stay; a compressed
batch becomes one wrapper of the same codec. The old formats do not support zstd.

Up (`up_convert`): all messages of an old client for one partition become one batch.
"""

from collections.abc import Iterable, Iterator

from broker.errors import ApiError, ErrorCode
from broker.records.batch import Batch, check_crc
from broker.records.builder import BatchSettings, build_batch
from broker.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from broker.records.layout import CURRENT_MAGIC, NO_TIMESTAMP, Codec
from broker.records.legacy import build_messages, read_columns
from broker.records.record import RecordTuple


def needs_down_conversion(batches: Iterable[Batch], magic: int) -> bool:
    """Whether a consumer that knows formats up to `magic` needs the batches converted."""
    return any(batch.magic > magic for batch in batches)


def down_convert(batches: Iterable[Batch], magic: int, first_offset: int) -> Iterator[bytes]:
    """Each batch in format `magic` (0 or 1); batches without records for old clients are left out.

    Records below `first_offset`, the fetch offset, are left out of uncompressed batches: some
    versions of librdkafka rely on it. ApiError UNSUPPORTED_COMPRESSION_TYPE for zstd.
    """
    for batch in batches:
        if batch.is_control:
            continue
        if batch.codec == Codec.ZSTD:
            raise ApiError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"the zstd batch at offset {batch.header.base_offset} cannot be down-converted",
            )
        converted = bytes(batch.view) if batch.magic <= magic else _down(batch, magic, first_offset)
        if converted:
            yield converted


def _down(batch: Batch, magic: int, first_offset: int) -> bytes:
    records = batch.record_tuples()
    if batch.codec == Codec.NONE:
        records = [record for record in records if record[0] >= first_offset]
    return build_messages(
        records, magic, batch.codec, batch.header.timestamp_type, batch.max_timestamp
    )


def up_convert(
    batches: Iterable[Batch],
    base_offset: int,
    settings: BatchSettings,
    max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> bytes:
    """One format 2 batch of the records that old clients sent, numbered from `base_offset`.

    `settings` has the topic's codec and timestamp type, the append time and the leader epoch.
    Every crc, the inner ones too, is checked first. ApiError INVALID_RECORD where Kafka rejects:
    no message at all, several formats, or more than one message where one is compressed; and
    UNKNOWN_SERVER_ERROR for a time before 1970.
    """
    messages = list(batches)
    _check_set(messages)
    records: list[RecordTuple] = []
    for batch in messages:
        check_crc(batch)
        records += _renumbered(batch, base_offset + len(records), max_bytes)
    return build_batch(records, settings)


def _check_set(messages: list[Batch]) -> None:
    if not messages:
        raise ApiError(ErrorCode.INVALID_RECORD, "there is no message to convert")
    formats = sorted({batch.magic for batch in messages})
    if len(formats) > 1:
        raise ApiError(ErrorCode.INVALID_RECORD, f"messages of the formats {formats} are mixed")
    if formats[0] >= CURRENT_MAGIC:
        raise ValueError("format 2 needs no conversion")
    if len(messages) > 1 and any(batch.codec != Codec.NONE for batch in messages):
        raise ApiError(
            ErrorCode.INVALID_RECORD, "a compressed message must be the only one of its partition"
        )


def _renumbered(batch: Batch, base_offset: int, max_bytes: int) -> list[RecordTuple]:
    columns = read_columns(batch.view, max_bytes, check_inner_crcs=True)
    if min(columns.timestamps) < NO_TIMESTAMP:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"invalid negative timestamp {min(columns.timestamps)}"
        )
    rows = zip(columns.timestamps, columns.keys(), columns.values(), strict=True)
    return [
        (base_offset + index, timestamp, key, value, ())
        for index, (timestamp, key, value) in enumerate(rows)
    ]
