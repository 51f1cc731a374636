"""The format of record batches, defined once: all readers and writers use these structs.

Format 2 (magic 2), a batch; all integers big-endian:

    position  bytes  field
           0      8  base offset
           8      4  batch length: the bytes that follow this field
          12      4  partition leader epoch
          16      1  magic, 2
          17      4  crc: CRC-32C of everything from the attributes to the end of the batch
          21      2  attributes, see the masks below
          23      4  last offset delta; also the last sequence delta
          27      8  base timestamp; the delete horizon where that attribute is set
          35      8  max timestamp; the append time where the timestamp type says so
          43      8  producer id
          51      2  producer epoch
          53      4  base sequence
          57      4  records count
          61      …  the records, compressed together where the attributes name a codec

The crc does not cover the base offset and the leader epoch, so a broker sets both without changing
the rest. Magic is at position 16 in every format, so it is read first.

One record of format 2; every `varint` and `varlong` is zigzag, a length of -1 is null:

    varint length of what follows, int8 attributes (unused), varlong timestamp delta,
    varint offset delta, varint key length, key, varint value length, value,
    varint headers count, and for each: varint key length, key, varint value length, value

Formats 0 and 1, a message; a compressed one wraps a set of messages in its value:

    position  bytes  field
           0      8  offset; of a wrapper: that of the last message inside
           8      4  message size: the bytes that follow this field
          12      4  crc: CRC-32 (the zip one) of everything from the magic on
          16      1  magic, 0 or 1
          17      1  attributes: codec, and in format 1 the timestamp type
          18      8  timestamp, format 1 only
           …      4  key length, -1 for null, then the key
           …      4  value length, -1 for null, then the value
"""

from enum import IntEnum
from mmap import mmap
from struct import Struct
from typing import Final

# Buffers that batches are read from: a received frame, a file's bytes, a mapped file.
BytesLike = bytes | bytearray | memoryview | mmap

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
assert HEADER.size == HEADER_SIZE  # noqa: S101 - the format, held at import

# Every format starts with these: offset, and the size of the rest.
LOG_ENTRY: Final = Struct(">qi")
LOG_OVERHEAD: Final = 12
assert LOG_ENTRY.size == LOG_OVERHEAD  # noqa: S101

MAGIC_POSITION: Final = 16
HEADER_SIZE_UP_TO_MAGIC: Final = MAGIC_POSITION + 1
PARTITION_LEADER_EPOCH_POSITION: Final = 12
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
MAX_TIMESTAMP_POSITION: Final = 35

CURRENT_MAGIC: Final = 2

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_MASK: Final = 0x08
TRANSACTIONAL_MASK: Final = 0x10
CONTROL_MASK: Final = 0x20
DELETE_HORIZON_MASK: Final = 0x40
DEFINED_ATTRIBUTES_MASK: Final = 0x7F  # Kafka clears the other bits when it rewrites a header

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

# Formats 0 and 1: the fixed fields of a message before its key.
MESSAGE_V0: Final = Struct(">qiIbb")
MESSAGE_V1: Final = Struct(">qiIbbq")
LEGACY_CRC_POSITION: Final = 12
LEGACY_ATTRIBUTES_POSITION: Final = 17
LEGACY_TIMESTAMP_POSITION: Final = 18
assert MESSAGE_V0.size == LEGACY_TIMESTAMP_POSITION  # noqa: S101
assert MESSAGE_V1.size == LEGACY_TIMESTAMP_POSITION + 8  # noqa: S101

# The minimum size after the size field: the fixed fields and two lengths.
MIN_MESSAGE_SIZE_V0: Final = MESSAGE_V0.size - LOG_OVERHEAD + 8
MIN_MESSAGE_SIZE_V1: Final = MESSAGE_V1.size - LOG_OVERHEAD + 8
MIN_BATCH_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
MIN_SIZE_BY_MAGIC: Final = (MIN_MESSAGE_SIZE_V0, MIN_MESSAGE_SIZE_V1, MIN_BATCH_LENGTH)
assert MIN_SIZE_BY_MAGIC == (14, 22, 49)  # noqa: S101

# The shortest record of format 2: seven fields of one byte. Bounds an unverified count.
MIN_RECORD_SIZE: Final = 7

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1


class Codec(IntEnum):
    """The codecs, by the number the attributes hold."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Who set the timestamps; format 0 has none."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
