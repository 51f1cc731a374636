"""Changes of encoded batches, as a leader makes them."""

from struct import Struct
from typing import Final

from crc32c import crc32c

from broker.records.batch import read_header
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    DEFINED_ATTRIBUTES_MASK,
    MAX_TIMESTAMP_POSITION,
    PARTITION_LEADER_EPOCH_POSITION,
    TIMESTAMP_TYPE_MASK,
    TimestampType,
)

_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")


def assign_offset_and_epoch(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Set base offset and leader epoch of the format 2 batch at `position`; the crc stays valid."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + PARTITION_LEADER_EPOCH_POSITION, leader_epoch)


def set_max_timestamp(
    buffer: bytearray | memoryview, position: int, timestamp_type: TimestampType, timestamp: int
) -> None:
    """Set timestamp type and max timestamp of the format 2 batch at `position`, and its crc.

    With LogAppendTime every record then has this timestamp. A batch that has both already is not
    changed, so the crc is computed only when needed.
    """
    header = read_header(buffer, position)
    if header.timestamp_type == timestamp_type and header.max_timestamp == timestamp:
        return
    attributes = header.attributes & (DEFINED_ATTRIBUTES_MASK & ~TIMESTAMP_TYPE_MASK)
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    _INT16.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_POSITION, timestamp)
    end = position + header.size_in_bytes
    crc = crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : end])
    _UINT32.pack_into(buffer, position + CRC_POSITION, crc)
