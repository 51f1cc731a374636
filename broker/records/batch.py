"""Batch headers: read, check, iterate over and modify batches without decoding records.

Functions take a bytes-like object (bytes, bytearray, memoryview, mmap) and a position in it and
copy nothing. Only the methods of `Batch` that return records decode them.
"""

import zlib
from struct import Struct
from typing import Final, NamedTuple, Self

from broker.errors import CorruptRecord
from broker.records.checksum import crc32c
from broker.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, decompress
from broker.records.decoder import decode_columns, decode_records
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_MASK,
    CURRENT_MAGIC,
    DELETE_HORIZON_MASK,
    HEADER,
    HEADER_SIZE,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAX_INT32,
    MESSAGE_V0,
    MESSAGE_V1,
    MIN_BATCH_LENGTH,
    MIN_MESSAGE_SIZE_V0,
    MIN_SIZE_BY_MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BytesLike,
    Codec,
    TimestampType,
)
from broker.records.legacy import read_columns
from broker.records.record import Record, RecordColumns, RecordTuple

_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")

_CODECS: Final = tuple(Codec)
_UNKNOWN_COUNT: Final = -1


class BatchHeader(NamedTuple):
    """The fields of a batch's header, in the order of the bytes.

    A message of format 0 or 1 has the same fields: its offset is the *last* offset of the messages
    it wraps, both timestamps are its own, and fields that the format lacks have Kafka's "none"
    value.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def last_offset(self) -> int:
        """The offset of the last record, also when compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The lowest possible base offset of the next batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, its offset and length fields included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def codec(self) -> Codec:
        """The codec the records are compressed with; CorruptRecord if there is no such codec."""
        number = self.attributes & CODEC_MASK
        if number >= len(_CODECS):
            raise CorruptRecord(
                f"batch at offset {self.base_offset}: expected a codec of 0 to 4, found {number}"
            )
        return _CODECS[number]

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether producers or the broker set the timestamps."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        if self.attributes & TIMESTAMP_TYPE_MASK:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the records (or the marker) belong to a transaction."""
        return self.magic >= CURRENT_MAGIC and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, which consumers never see."""
        return self.magic >= CURRENT_MAGIC and bool(self.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may remove tombstones and markers of the batch; None if not set."""
        if self.magic >= CURRENT_MAGIC and self.attributes & DELETE_HORIZON_MASK:
            return self.base_timestamp
        return None

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote it."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences start again at 0 after the largest int32."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def increment_sequence(sequence: int, increment: int) -> int:
    """The sequence `increment` records later; wraps from the largest int32 to 0."""
    return (sequence + increment) & MAX_INT32


def read_header(buffer: BytesLike, position: int = 0) -> BatchHeader:
    """The header of the format 2 batch at `position`.

    The records need not be in the buffer. CorruptRecord if the header is cut short, of another
    format, or its length is too small; nothing else is checked.
    """
    if len(buffer) - position < HEADER_SIZE:
        raise CorruptRecord(
            f"position {position}: expected {HEADER_SIZE} bytes of batch header, "
            f"found {max(len(buffer) - position, 0)}"
        )
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    if header.magic != CURRENT_MAGIC:
        raise CorruptRecord(f"position {position}: expected magic 2, found {header.magic}")
    if header.batch_length < MIN_BATCH_LENGTH:
        raise CorruptRecord(
            f"position {position}: expected a batch length of at least {MIN_BATCH_LENGTH}, "
            f"found {header.batch_length}"
        )
    return header


def _read_legacy_header(buffer: BytesLike, position: int, magic: int) -> BatchHeader:
    timestamp = NO_TIMESTAMP
    if magic == 0:
        offset, size, crc, _, attributes = MESSAGE_V0.unpack_from(buffer, position)
    else:
        offset, size, crc, _, attributes, timestamp = MESSAGE_V1.unpack_from(buffer, position)
    return BatchHeader(
        base_offset=offset,
        batch_length=size,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=_UNKNOWN_COUNT,
    )


class Batch:
    """One whole batch of any format, in its buffer.

    `header` is read once; `position` is that of the batch in the buffer it was found in.
    Keeps a reference to the buffer: a mapped file cannot be closed while one of its batches exists.
    """

    __slots__ = ("_buffer", "header", "position")

    def __init__(self, buffer: memoryview, position: int, header: BatchHeader) -> None:
        self._buffer = buffer
        self.position = position
        self.header = header

    @property
    def view(self) -> memoryview:
        """The bytes of the batch; writable if the buffer is."""
        return self._buffer[self.position : self.end_position]

    @property
    def end_position(self) -> int:
        """The position of the next batch."""
        return self.position + self.header.batch_length + LOG_OVERHEAD

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, its offset and length fields included."""
        return self.header.size_in_bytes

    @property
    def magic(self) -> int:
        """The format: 0, 1 or 2."""
        return self.header.magic

    @property
    def codec(self) -> Codec:
        """The codec of the records; CorruptRecord if the number is unknown."""
        return self.header.codec

    @property
    def base_offset(self) -> int:
        """The first offset; a compressed message of format 0 or 1 must be decompressed for it."""
        if self.magic < CURRENT_MAGIC and self.header.attributes & CODEC_MASK:
            return self.columns().offsets[0]
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last record the batch was written with."""
        return self.header.last_offset

    @property
    def next_offset(self) -> int:
        """The lowest possible base offset of the next batch."""
        return self.header.next_offset

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp; -1 if the format has no timestamps."""
        return self.header.max_timestamp

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, which consumers never see."""
        return self.header.is_control

    @property
    def records_count(self) -> int | None:
        """The number of records; None for formats 0 and 1."""
        return None if self.magic < CURRENT_MAGIC else self.header.records_count

    def columns(self, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> RecordColumns:
        """The records as columns: the cheapest form, see `RecordColumns`.

        CorruptRecord, naming the batch, if they cannot be read or inflate beyond `max_bytes`.
        """
        try:
            if self.magic < CURRENT_MAGIC:
                return read_columns(self.view, max_bytes)
            return decode_columns(self.records_data(max_bytes), *self._decoding())
        except CorruptRecord as error:
            raise self._corrupt(error) from None

    def record_tuples(self, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> list[RecordTuple]:
        """The records as plain tuples in the order of `Record`'s fields; fails as `columns`."""
        if self.magic < CURRENT_MAGIC:
            columns = self.columns(max_bytes)
            keys, values = columns.keys(), columns.values()
            rows = zip(columns.offsets, columns.timestamps, keys, values, strict=True)
            return [(*row, ()) for row in rows]  # these formats have no headers
        try:
            return decode_records(self.records_data(max_bytes), *self._decoding())
        except CorruptRecord as error:
            raise self._corrupt(error) from None

    def records(self, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> list[Record]:
        """The records with names; fails as `columns`."""
        return [Record(*fields) for fields in self.record_tuples(max_bytes)]

    def records_data(self, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> bytes:
        """The records section of a format 2 batch, decompressed."""
        compressed = self._buffer[self.position + HEADER_SIZE : self.end_position]
        return decompress(self.codec, compressed, max_bytes)

    def _decoding(self) -> tuple[int, int, int, int | None]:
        header = self.header
        append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_MASK else None
        return header.records_count, header.base_offset, header.base_timestamp, append_time

    def _corrupt(self, error: CorruptRecord) -> CorruptRecord:
        return CorruptRecord(
            f"batch at position {self.position}, last offset {self.last_offset}: {error}"
        )

    def computed_crc(self) -> int:
        """The checksum computed from the bytes: CRC-32C, or CRC-32 for formats 0 and 1."""
        start = ATTRIBUTES_POSITION if self.magic >= CURRENT_MAGIC else MAGIC_POSITION
        checked = self._buffer[self.position + start : self.end_position]
        return crc32c(checked) if self.magic >= CURRENT_MAGIC else zlib.crc32(checked)

    def is_crc_valid(self) -> bool:
        """Whether the stored crc is that of the bytes."""
        return self.computed_crc() == self.header.crc


def check_crc(batch: Batch) -> None:
    """CorruptRecord, with both checksums, if the stored crc is not that of the bytes."""
    computed = batch.computed_crc()
    if computed != batch.header.crc:
        raise CorruptRecord(
            f"batch at position {batch.position}, last offset {batch.last_offset}: "
            f"expected crc {batch.header.crc}, found {computed}"
        )


class BatchIterator:
    """The whole batches of a buffer, in order.

    A batch cut short by the end of the buffer ends the iteration without an error, because a fetch
    response or a torn log may end that way; `position` is then its start (the end of the last whole
    batch), and `is_cut_short` is True. CorruptRecord for bytes that no batch can start with.
    """

    __slots__ = ("_buffer", "_end", "position")

    def __init__(self, buffer: memoryview, position: int, end: int) -> None:
        self._buffer = buffer
        self._end = end
        self.position = position

    @property
    def is_cut_short(self) -> bool:
        """Whether bytes are left from `position` on; final once the iteration has ended."""
        return self.position < self._end

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        header = self._next_header()
        if header is None:
            raise StopIteration
        batch = Batch(self._buffer, self.position, header)
        self.position = batch.end_position
        return batch

    def _next_header(self) -> BatchHeader | None:
        """The header of the batch at `position`, or None if the batch is cut short."""
        buffer, position = self._buffer, self.position
        remaining = self._end - position
        if remaining < LOG_OVERHEAD:
            return None
        (size,) = _INT32.unpack_from(buffer, position + 8)
        _check_size(position, size, MIN_MESSAGE_SIZE_V0)
        # As in Kafka, a length beyond the end is checked before the magic: the batch is torn.
        if remaining < HEADER_SIZE_UP_TO_MAGIC or remaining < size + LOG_OVERHEAD:
            return None
        magic = buffer[position + MAGIC_POSITION]
        if magic > CURRENT_MAGIC:
            raise CorruptRecord(f"position {position}: expected magic 0, 1 or 2, found {magic}")
        _check_size(position, size, MIN_SIZE_BY_MAGIC[magic])
        if magic == CURRENT_MAGIC:
            return BatchHeader._make(HEADER.unpack_from(buffer, position))
        return _read_legacy_header(buffer, position, magic)


def _check_size(position: int, size: int, minimum: int) -> None:
    if size < minimum:
        raise CorruptRecord(
            f"position {position}: expected a batch length of at least {minimum}, found {size}"
        )


def iterate_batches(buffer: BytesLike, position: int = 0, end: int | None = None) -> BatchIterator:
    """The batches, of any format, from `position` up to `end` (the end of the buffer)."""
    view = memoryview(buffer)
    return BatchIterator(view, position, len(view) if end is None else end)
