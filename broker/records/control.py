"""Control records, which are for brokers; consumers skip control batches.

The key of every control record is a version and a type (int16 each). A transaction ends with a
batch of one: its value is a version (int16) and the epoch of the coordinator (int32) that wrote it,
so that markers of a fenced coordinator can be rejected. The other types belong to KRaft's metadata
log; their values are protocol messages and are returned undecoded.
"""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from broker.errors import CorruptRecord
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import NO_PARTITION_LEADER_EPOCH

_KEY: Final = Struct(">hh")
_END_TXN_VALUE: Final = Struct(">hi")
_CURRENT_VERSION: Final = 0


class ControlRecordType(IntEnum):
    """The types of control records; those of newer versions are UNKNOWN and skipped."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @classmethod
    def _missing_(cls, value: object) -> "ControlRecordType":
        return cls.UNKNOWN


class EndTransactionMarker(NamedTuple):
    """How a transaction ended on one partition, and the epoch of its coordinator."""

    control_type: ControlRecordType
    coordinator_epoch: int


def control_type(key: bytes | None) -> ControlRecordType:
    """The type in a control record's key; newer key versions only add fields."""
    version, type_id = _unpack("control record key", _KEY, key)
    if version < 0:
        raise CorruptRecord(f"control record key: expected a version of 0 or more, found {version}")
    return ControlRecordType(type_id)


def control_key(record_type: ControlRecordType) -> bytes:
    """The key of a control record of this type."""
    return _KEY.pack(_CURRENT_VERSION, record_type)


def read_end_transaction_marker(key: bytes | None, value: bytes | None) -> EndTransactionMarker:
    """The marker in a control record; CorruptRecord if it is of another type or too short."""
    record_type = control_type(key)
    if record_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise CorruptRecord(f"expected an end-transaction marker, found {record_type.name}")
    version, coordinator_epoch = _unpack("end-transaction marker", _END_TXN_VALUE, value)
    if version < 0:
        raise CorruptRecord(
            f"end-transaction marker: expected a version of 0 or more, found {version}"
        )
    return EndTransactionMarker(record_type, coordinator_epoch)


def build_end_transaction_batch(
    marker: EndTransactionMarker,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """The marker batch that ends a producer's transaction on one partition."""
    settings = BatchSettings(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=True,
        is_control=True,
    )
    value = _END_TXN_VALUE.pack(_CURRENT_VERSION, marker.coordinator_epoch)
    return build_batch([(offset, timestamp, control_key(marker.control_type), value, ())], settings)


def _unpack(what: str, layout: Struct, data: bytes | None) -> tuple[int, int]:
    found = len(data or b"")
    if data is None or found < layout.size:
        raise CorruptRecord(f"{what}: expected at least {layout.size} bytes, found {found}")
    first, second = layout.unpack_from(data)
    return first, second
