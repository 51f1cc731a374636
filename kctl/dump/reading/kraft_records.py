"""Records that only KRaft clusters write: the metadata log, and the states of share groups.

The metadata log (`__cluster_metadata-0`) and its snapshots (`*.checkpoint`) hold records without
keys. A value is framed: unsigned varints for the frame version (1), the record type and its
version, then the flexible message.
"""

import json
from typing import Any, Final

from broker.model import Uuid
from broker.protocol.codec import decode_from
from broker.protocol.errors import DecodeError
from broker.protocol.json_view import to_json
from broker.protocol.schema import Message, Struct, wire
from broker.records.control import ControlRecordType

_FRAME_VERSION: Final = 1


class Endpoint(Struct):
    """A listener of a node."""

    name: str = wire("string")
    host: str = wire("string")
    port: int = wire("uint16")
    security_protocol: int = wire("int16")


class Feature(Struct):
    """A range of levels that a node supports."""

    name: str = wire("string")
    min_supported_version: int = wire("int16")
    max_supported_version: int = wire("int16")


class RegisterBrokerRecord(Message, versions=(0, 3), flexible=0):
    broker_id: int = wire("int32")
    is_migrating_zk_broker: bool = wire("bool", since=2)
    incarnation_id: Uuid = wire("uuid")
    broker_epoch: int = wire("int64")
    end_points: list[Endpoint] = wire([Endpoint])
    features: list[Feature] = wire([Feature])
    rack: str | None = wire("string", nullable=0)
    fenced: bool = wire("bool", default=True)
    in_controlled_shutdown: bool = wire("bool", since=1)
    log_dirs: list[Uuid] = wire("[]uuid", since=3, tag=0)


class UnregisterBrokerRecord(Message, versions=(0, 0), flexible=0):
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")


class TopicRecord(Message, versions=(0, 0), flexible=0):
    name: str = wire("string")
    topic_id: Uuid = wire("uuid")


class PartitionRecord(Message, versions=(0, 2), flexible=0):
    partition_id: int = wire("int32", default=-1)
    topic_id: Uuid = wire("uuid")
    replicas: list[int] = wire("[]int32")
    isr: list[int] = wire("[]int32")
    removing_replicas: list[int] = wire("[]int32")
    adding_replicas: list[int] = wire("[]int32")
    leader: int = wire("int32", default=-1)
    leader_recovery_state: int = wire("int8", tag=0)
    leader_epoch: int = wire("int32", default=-1)
    partition_epoch: int = wire("int32", default=-1)
    directories: list[Uuid] = wire("[]uuid", since=1)
    eligible_leader_replicas: list[int] | None = wire(
        "[]int32", since=2, nullable=2, default=None, tag=1
    )
    last_known_elr: list[int] | None = wire("[]int32", since=2, nullable=2, default=None, tag=2)


class ConfigRecord(Message, versions=(0, 0), flexible=0):
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    name: str = wire("string")
    value: str | None = wire("string", nullable=0)


class PartitionChangeRecord(Message, versions=(0, 2), flexible=0):
    partition_id: int = wire("int32", default=-1)
    topic_id: Uuid = wire("uuid")
    isr: list[int] | None = wire("[]int32", nullable=0, default=None, tag=0)
    leader: int = wire("int32", default=-2, tag=1)
    replicas: list[int] | None = wire("[]int32", nullable=0, default=None, tag=2)
    removing_replicas: list[int] | None = wire("[]int32", nullable=0, default=None, tag=3)
    adding_replicas: list[int] | None = wire("[]int32", nullable=0, default=None, tag=4)
    leader_recovery_state: int = wire("int8", default=-1, tag=5)
    eligible_leader_replicas: list[int] | None = wire(
        "[]int32", since=2, nullable=2, default=None, tag=6
    )
    last_known_elr: list[int] | None = wire("[]int32", since=2, nullable=2, default=None, tag=7)
    directories: list[Uuid] | None = wire("[]uuid", since=1, nullable=1, default=None, tag=8)


class FenceBrokerRecord(Message, versions=(0, 0), flexible=0):
    id: int = wire("int32")
    epoch: int = wire("int64")


class UnfenceBrokerRecord(Message, versions=(0, 0), flexible=0):
    id: int = wire("int32")
    epoch: int = wire("int64")


class RemoveTopicRecord(Message, versions=(0, 0), flexible=0):
    topic_id: Uuid = wire("uuid")


class DelegationTokenRecord(Message, versions=(0, 0), flexible=0):
    owner: str = wire("string")
    requester: str = wire("string")
    renewers: list[str] = wire("[]string")
    issue_timestamp: int = wire("int64")
    max_timestamp: int = wire("int64")
    expiration_timestamp: int = wire("int64")
    token_id: str = wire("string")


class UserScramCredentialRecord(Message, versions=(0, 0), flexible=0):
    name: str = wire("string")
    mechanism: int = wire("int8")
    salt: bytes = wire("bytes")
    stored_key: bytes = wire("bytes")
    server_key: bytes = wire("bytes")
    iterations: int = wire("int32")


class FeatureLevelRecord(Message, versions=(0, 0), flexible=0):
    name: str = wire("string")
    feature_level: int = wire("int16")


class QuotaEntity(Struct):
    """A part of the entity of a quota."""

    entity_type: str = wire("string")
    entity_name: str | None = wire("string", nullable=0)


class ClientQuotaRecord(Message, versions=(0, 0), flexible=0):
    entity: list[QuotaEntity] = wire([QuotaEntity])
    key: str = wire("string")
    value: float = wire("float64")
    remove: bool = wire("bool")


class ProducerIdsRecord(Message, versions=(0, 0), flexible=0):
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64", default=-1)
    next_producer_id: int = wire("int64")


class BrokerRegistrationChangeRecord(Message, versions=(0, 2), flexible=0):
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")
    fenced: int = wire("int8", tag=0)
    in_controlled_shutdown: int = wire("int8", since=1, tag=1)
    log_dirs: list[Uuid] = wire("[]uuid", since=2, tag=2)


class AccessControlEntryRecord(Message, versions=(0, 0), flexible=0):
    id: Uuid = wire("uuid")
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    pattern_type: int = wire("int8")
    principal: str = wire("string")
    host: str = wire("string")
    operation: int = wire("int8")
    permission_type: int = wire("int8")


class RemoveAccessControlEntryRecord(Message, versions=(0, 0), flexible=0):
    id: Uuid = wire("uuid")


class NoOpRecord(Message, versions=(0, 0), flexible=0):
    pass


class ZkMigrationStateRecord(Message, versions=(0, 0), flexible=0):
    zk_migration_state: int = wire("int8")


class RemoveUserScramCredentialRecord(Message, versions=(0, 0), flexible=0):
    name: str = wire("string")
    mechanism: int = wire("int8")


class BeginTransactionRecord(Message, versions=(0, 0), flexible=0):
    name: str | None = wire("string", nullable=0, default=None, tag=0)


class EndTransactionRecord(Message, versions=(0, 0), flexible=0):
    pass


class AbortTransactionRecord(Message, versions=(0, 0), flexible=0):
    reason: str | None = wire("string", nullable=0, default=None, tag=0)


class RemoveDelegationTokenRecord(Message, versions=(0, 0), flexible=0):
    token_id: str = wire("string")


class RegisterControllerRecord(Message, versions=(0, 0), flexible=0):
    controller_id: int = wire("int32")
    incarnation_id: Uuid = wire("uuid")
    zk_migration_ready: bool = wire("bool")
    end_points: list[Endpoint] = wire([Endpoint])
    features: list[Feature] = wire([Feature])


class ClearElrRecord(Message, versions=(0, 0), flexible=0):
    topic_name: str = wire("string")


METADATA_RECORDS: Final[dict[int, tuple[str, type[Message]]]] = {
    0: ("REGISTER_BROKER_RECORD", RegisterBrokerRecord),
    1: ("UNREGISTER_BROKER_RECORD", UnregisterBrokerRecord),
    2: ("TOPIC_RECORD", TopicRecord),
    3: ("PARTITION_RECORD", PartitionRecord),
    4: ("CONFIG_RECORD", ConfigRecord),
    5: ("PARTITION_CHANGE_RECORD", PartitionChangeRecord),
    7: ("FENCE_BROKER_RECORD", FenceBrokerRecord),
    8: ("UNFENCE_BROKER_RECORD", UnfenceBrokerRecord),
    9: ("REMOVE_TOPIC_RECORD", RemoveTopicRecord),
    10: ("DELEGATION_TOKEN_RECORD", DelegationTokenRecord),
    11: ("USER_SCRAM_CREDENTIAL_RECORD", UserScramCredentialRecord),
    12: ("FEATURE_LEVEL_RECORD", FeatureLevelRecord),
    14: ("CLIENT_QUOTA_RECORD", ClientQuotaRecord),
    15: ("PRODUCER_IDS_RECORD", ProducerIdsRecord),
    17: ("BROKER_REGISTRATION_CHANGE_RECORD", BrokerRegistrationChangeRecord),
    18: ("ACCESS_CONTROL_ENTRY_RECORD", AccessControlEntryRecord),
    19: ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", RemoveAccessControlEntryRecord),
    20: ("NO_OP_RECORD", NoOpRecord),
    21: ("ZK_MIGRATION_STATE_RECORD", ZkMigrationStateRecord),
    22: ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", RemoveUserScramCredentialRecord),
    23: ("BEGIN_TRANSACTION_RECORD", BeginTransactionRecord),
    24: ("END_TRANSACTION_RECORD", EndTransactionRecord),
    25: ("ABORT_TRANSACTION_RECORD", AbortTransactionRecord),
    26: ("REMOVE_DELEGATION_TOKEN_RECORD", RemoveDelegationTokenRecord),
    27: ("REGISTER_CONTROLLER_RECORD", RegisterControllerRecord),
    28: ("CLEAR_ELR_RECORD", ClearElrRecord),
}
"""Name and message of each record type, up to Kafka 4.1."""


def metadata_document(value: bytes | None) -> dict[str, Any]:
    """A record of the metadata log as JSON; DecodeError if it cannot be decoded."""
    if value is None:
        raise DecodeError("the record has no value")
    frame, at = _uvarint(value, 0)
    if frame != _FRAME_VERSION:
        raise DecodeError(f"expected frame version {_FRAME_VERSION}, found {frame}")
    record_type, at = _uvarint(value, at)
    version, at = _uvarint(value, at)
    if record_type not in METADATA_RECORDS:
        raise DecodeError(f"Unknown metadata id {record_type}")
    name, cls = METADATA_RECORDS[record_type]
    message = decode_from(cls, value, at, version)[0]
    return {"type": name, "version": version, "data": to_json(message, version)}


def metadata_words(offset: int, value: bytes | None) -> str:
    """The record as kafka-dump-log prints it."""
    try:
        return json.dumps(metadata_document(value), ensure_ascii=False, separators=(",", ":"))
    except DecodeError as error:
        return f"Error at {offset}, skipping. {error}"


class SnapshotHeaderRecord(Message, versions=(0, 0), flexible=0):
    version: int = wire("int16")
    last_contained_log_timestamp: int = wire("int64")


class SnapshotFooterRecord(Message, versions=(0, 0), flexible=0):
    version: int = wire("int16")


class KRaftVersionRecord(Message, versions=(0, 0), flexible=0):
    version: int = wire("int16")
    k_raft_version: int = wire("int16")


class VoterEndpoint(Struct):
    """A listener of a controller."""

    name: str = wire("string")
    host: str = wire("string")
    port: int = wire("uint16")


class KRaftVersionFeature(Struct):
    """The versions of KRaft that a controller supports."""

    min_supported_version: int = wire("int16")
    max_supported_version: int = wire("int16")


class RecordedVoter(Struct):
    """A voter of the quorum."""

    voter_id: int = wire("int32")
    voter_directory_id: Uuid = wire("uuid")
    endpoints: list[VoterEndpoint] = wire([VoterEndpoint])
    k_raft_version_feature: KRaftVersionFeature = wire(KRaftVersionFeature)


class VotersRecord(Message, versions=(0, 0), flexible=0):
    version: int = wire("int16")
    voters: list[RecordedVoter] = wire([RecordedVoter])


_CONTROL_RECORDS: Final[dict[ControlRecordType, tuple[str, type[Message]]]] = {
    ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlRecordType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlRecordType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


def control_words(record_type: ControlRecordType, value: bytes | None) -> str | None:
    """A control record of a KRaft log as kafka-dump-log prints it; None for other kinds.

    Kafka 3.9 does not decode LEADER_CHANGE.
    The value begins with its version, which is also a field of the message.
    """
    if record_type not in _CONTROL_RECORDS or value is None:
        return None
    name, cls = _CONTROL_RECORDS[record_type]
    try:
        version = int.from_bytes(value[:2], "big")
        document = to_json(decode_from(cls, value, 0, version)[0], version)
    except DecodeError:
        return None
    return f"{name} {json.dumps(document, ensure_ascii=False, separators=(',', ':'))}"


def _uvarint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    for position in range(at, min(at + 5, len(data))):
        number |= (data[position] & 0x7F) << shift
        if not data[position] & 0x80:
            return number, position + 1
        shift += 7
    raise DecodeError("the record ends within its header")


class ShareStateKey(Message, versions=(0, 1)):
    """Key of both record types of `__share_group_state`."""

    group_id: str = wire("string")
    topic_id: Uuid = wire("uuid")
    partition: int = wire("int32")


class StateBatch(Struct):
    """A range of offsets with one delivery state."""

    first_offset: int = wire("int64")
    last_offset: int = wire("int64")
    delivery_state: int = wire("int8")
    delivery_count: int = wire("int16")


class ShareSnapshotValue(Message, versions=(0, 0), flexible=0):
    """The complete state of a share partition."""

    snapshot_epoch: int = wire("int32")
    state_epoch: int = wire("int32")
    leader_epoch: int = wire("int32")
    start_offset: int = wire("int64")
    create_timestamp: int = wire("int64")
    write_timestamp: int = wire("int64")
    state_batches: list[StateBatch] = wire([StateBatch])


class ShareUpdateValue(Message, versions=(0, 0), flexible=0):
    """What changed since the snapshot."""

    snapshot_epoch: int = wire("int32")
    leader_epoch: int = wire("int32")
    start_offset: int = wire("int64")
    state_batches: list[StateBatch] = wire([StateBatch])


SHARE_RECORDS: Final[dict[int, tuple[type[Message], type[Message]]]] = {
    0: (ShareStateKey, ShareSnapshotValue),
    1: (ShareStateKey, ShareUpdateValue),
}
