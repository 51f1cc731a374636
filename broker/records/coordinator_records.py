"""Records of the coordinators' topics (`__consumer_offsets`, `__transaction_state`).

Keys and values are messages of the protocol with their version before them, an int16. A record with
a null value (a tombstone) removes its key.
"""

import struct
from collections.abc import Iterable
from typing import Final, TypeVar

from broker.errors import CorruptRecord
from broker.protocol.codec import decode, encode
from broker.protocol.errors import DecodeError
from broker.protocol.schema import Message
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec

MessageT = TypeVar("MessageT", bound=Message)

_VERSION: Final = struct.Struct(">h")
VERSION_SIZE: Final = _VERSION.size


def encode_versioned(message: Message, version: int) -> bytes:
    """A key or value: the version, then the message."""
    return _VERSION.pack(version) + encode(message, version)


def read_version(data: bytes | None) -> int:
    """The version of a key or value; CorruptRecord if it is too short to have one."""
    if data is None or len(data) < VERSION_SIZE:
        raise CorruptRecord(f"coordinator record: expected a version, found {data!r}")
    (version,) = _VERSION.unpack_from(data)
    return int(version)


def decode_versioned(cls: type[MessageT], data: bytes, version: int) -> MessageT:
    """The message of a key or value; CorruptRecord if it cannot be decoded."""
    try:
        return decode(cls, memoryview(data)[VERSION_SIZE:], version)
    except DecodeError as error:
        raise CorruptRecord(f"coordinator record: {error}") from error


def build_tombstones(keys: Iterable[bytes], timestamp_ms: int, codec: Codec = Codec.NONE) -> bytes:
    """The batch that removes these keys, at least one."""
    rows = ((number, timestamp_ms, key, None, ()) for number, key in enumerate(keys))
    return build_batch(rows, BatchSettings(codec=codec))
