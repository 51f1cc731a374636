"""The rules for the header of a client's batch, for the fast path and for the full path.

 A. The bytes are one batch of format 2, neither shorter nor longer.
 B. The base offset is 0: the leader assigns offsets.
 C. The crc is valid.
 D. The codec exists.
 E. The last offset delta is not negative, and there is one record for each offset.
 F. It is not a control batch.
 G. A batch with a producer id has a sequence.

`read_plain_header` is on the fast path: it evaluates A to F in one expression and gives no reason,
because a call for each rule would cost more than the rules. The other functions evaluate them one
by one and raise the error that Kafka gives. Both are in this module, so that neither is changed
without the other; a property test (tests/log/test_fast_append.py) compares them on arbitrary
headers. Rule G is not in the expression: there, a producer's sequence must continue its last one.
"""

from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.records.batch import BatchHeader
from broker.records.checksum import crc32c
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_MASK,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TRANSACTIONAL_MASK,
    Codec,
)

# An int, because looking up a member of an enum takes as long as several calls.
_LAST_CODEC: Final = int(max(Codec))
_PLAIN_ATTRIBUTES: Final = CODEC_MASK | TRANSACTIONAL_MASK
"""Attributes of a batch that can be stored unchanged; excludes control batches (F)."""


def read_plain_header(view: memoryview) -> tuple[int, ...] | None:
    """The header of the one batch in `view` if it keeps A to F and can be stored unchanged.

    Returns the fields of BatchHeader as a plain tuple: making a BatchHeader takes as long as
    checking it. None says nothing about the batch: the full path may accept it.
    """
    size = len(view)
    if size < HEADER_SIZE:  # A
        return None
    fields: tuple[int, ...] = HEADER.unpack_from(view)
    offset, length, _, magic, crc, attributes, last_delta, _, _, _, _, _, count = fields
    if (
        magic != CURRENT_MAGIC  # A
        or offset  # B
        or length + LOG_OVERHEAD != size  # A
        or attributes & ~_PLAIN_ATTRIBUTES  # F
        or attributes & CODEC_MASK > _LAST_CODEC  # D
        or last_delta < 0  # E
        or count != last_delta + 1  # E
        or crc32c(view[ATTRIBUTES_POSITION:]) != crc  # C
    ):
        return None
    return fields


def invalid_batch(problem: str) -> ApiError:
    """INVALID_RECORD for the batch as a whole."""
    return ApiError(ErrorCode.INVALID_RECORD, f"invalid record batch: {problem}")


def check_base_offset(header: BatchHeader) -> None:
    """Rule B, for clients; old formats number their records as they like."""
    if header.base_offset and header.magic == CURRENT_MAGIC:
        raise invalid_batch(f"base offset {header.base_offset}, not 0")


def check_codec(header: BatchHeader) -> None:
    """Rule D, for all origins: UNKNOWN_SERVER_ERROR, as in Kafka."""
    codec = header.attributes & CODEC_MASK
    if codec > _LAST_CODEC:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown compression type id {codec}")


def check_client_header(header: BatchHeader) -> None:
    """Rules E, F and G, for clients; old formats have none of these fields."""
    _, _, _, magic, _, attributes, last_delta, _, _, producer_id, _, sequence, count = header
    if magic != CURRENT_MAGIC:
        return
    if last_delta < 0:  # E
        raise invalid_batch(f"last offset delta {last_delta}")
    if count != last_delta + 1:  # E
        raise invalid_batch(f"{count} records for {last_delta + 1} offsets")
    if attributes & CONTROL_MASK:  # F
        raise invalid_batch("clients are not allowed to write control records")
    if sequence < 0 <= producer_id:  # G
        raise invalid_batch(f"sequence {sequence} with a producer id")
