"""Requests that tests of several APIs send, each with one topic and one partition."""

import time
from typing import Any

from broker.errors import ErrorCode
from broker.model import Uuid
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from broker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.log.support import batch
from tests.support.wire import WireClient

LATEST, EARLIEST = -1, -2


def create_topic(wire: WireClient, name: str, num_partitions: int = 1, **configs: str) -> None:
    """Create a topic and wait for it; `retention_ms="1"` sets retention.ms."""
    topic = CreatableTopic(
        name=name,
        num_partitions=num_partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    (created,) = wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics
    assert created.error_code == ErrorCode.NONE, created.error_message


def produce_request(
    topic: str, records: bytes | None, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    topic_data = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topic_data)


def produce(
    wire: WireClient, topic: str, *values: str, partition: int = 0, version: int = 9
) -> PartitionProduceResponse:
    """Append one batch, with a record for each value, of now."""
    records = batch(*values, timestamp=int(time.time() * 1000))
    response = wire.ask(produce_request(topic, records, partition), version)
    (answered,) = response.responses[0].partition_responses
    return answered


def fetch_request(
    topic: str,
    offset: int = 0,
    partition: int = 0,
    *,
    topic_id: Uuid = Uuid.ZERO,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    asked = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=current_leader_epoch,
    )
    asked_topic = FetchTopic(topic=topic, topic_id=topic_id, partitions=[asked])
    limits = {"max_wait_ms": 500, "min_bytes": 1} | fields
    return FetchRequest(topics=[asked_topic], **limits)


def fetch(
    wire: WireClient, topic: str, offset: int = 0, version: int = 12, **fields: Any
) -> PartitionData:
    response = wire.ask(fetch_request(topic, offset, **fields), version)
    (answered,) = response.responses[0].partitions
    return answered


def records_of(fetched: PartitionData) -> bytes:
    """The records of a response; b"" if it has none."""
    records = fetched.records or b""
    assert isinstance(records, bytes | bytearray | memoryview)
    return bytes(records)


def list_offset(
    wire: WireClient, topic: str, timestamp: int, partition: int = 0, version: int = 9
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )
    (answered,) = wire.ask(request, version).topics[0].partitions
    return answered


def join(
    wire: WireClient, group: str, member_id: str = "", version: int = 9, **fields: Any
) -> JoinGroupResponse:
    """Join as a consumer that supports the range assignor."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"subscription")
    own: dict[str, Any] = {
        "session_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [protocol],
    }
    if version >= 1:
        own["rebalance_timeout_ms"] = 30_000
    return wire.ask(
        JoinGroupRequest(group_id=group, member_id=member_id, **(own | fields)), version
    )


def join_as_only_member(wire: WireClient, group: str) -> JoinGroupResponse:
    """A generation with one member: the first response brings the id that the second one uses."""
    return join(wire, group, join(wire, group).member_id)


def commit_request(
    group: str, topic: str, offset: int, metadata: str = "note", **fields: Any
) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=metadata
    )
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    return OffsetCommitRequest(group_id=group, topics=topics, **fields)


def commit(wire: WireClient, group: str, topic: str, offset: int, **fields: Any) -> int:
    """The error code."""
    response = wire.ask(commit_request(group, topic, offset, **fields), 8)
    return response.topics[0].partitions[0].error_code
