"""Records in and out of one broker of a cluster, and its replicas' files."""

from pathlib import Path

from broker.model import TopicPartition
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from broker.records.batch import iterate_batches
from tests.cluster.asking import make_topic
from tests.log.support import batch, texts_of
from tests.support.cluster import Cluster, wait_until
from tests.support.wire import WireClient

PRODUCE, FETCH, LIST_OFFSETS = 9, 12, 8  # the last versions that name topics by name


def produce(
    cluster: Cluster,
    broker_id: int,
    name: TopicPartition,
    *values: str,
    acks: int = -1,
    timeout_ms: int = 10_000,
) -> PartitionProduceResponse:
    """Write one batch to this broker, whether or not it leads."""
    request = produce_request(name, *values, acks=acks, timeout_ms=timeout_ms)
    with WireClient(cluster.address(broker_id)) as wire:
        return wire.ask(request, PRODUCE).responses[0].partition_responses[0]


def produce_request(
    name: TopicPartition, *values: str, acks: int = -1, timeout_ms: int = 10_000
) -> ProduceRequest:
    """One batch of these values."""
    data = PartitionProduceData(index=name.partition, records=batch(*values))
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=name.topic, partition_data=[data])],
    )


def fetch(
    cluster: Cluster, broker_id: int, name: TopicPartition, offset: int = 0, rack_id: str = ""
) -> PartitionData:
    """What this broker has for a consumer from an offset on."""
    asked = FetchPartition(
        partition=name.partition, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        topics=[FetchTopic(topic=name.topic, partitions=[asked])],
        rack_id=rack_id,
    )
    with WireClient(cluster.address(broker_id)) as wire:
        return wire.ask(request, FETCH).responses[0].partitions[0]


def values(data: PartitionData) -> list[str]:
    """The values in an answer to fetch."""
    found = data.records
    assert isinstance(found, bytes | memoryview)
    return [text for each in iterate_batches(found) for text in texts_of(each)]


def replicated_topic(
    cluster: Cluster, name: TopicPartition, replicas: list[int], **configs: str
) -> None:
    """Make a topic of one partition, and wait until every replica knows of it."""
    make_topic(cluster, name.topic, {0: replicas}, **configs)
    for broker_id in replicas:
        _wait_for_replica(cluster, broker_id, name)


def _wait_for_replica(cluster: Cluster, broker_id: int, name: TopicPartition) -> None:
    wait_until(
        lambda: latest_offset(cluster, broker_id, name) is not None,
        f"broker {broker_id} has {name}",
    )


def latest_offset(cluster: Cluster, broker_id: int, name: TopicPartition) -> int | None:
    """The log end offset of this broker's replica, as one who debugs may ask for it."""
    asked = ListOffsetsPartition(partition_index=name.partition, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-2, topics=[ListOffsetsTopic(name=name.topic, partitions=[asked])]
    )
    with WireClient(cluster.address(broker_id)) as wire:
        answer = wire.ask(request, LIST_OFFSETS).topics[0].partitions[0]
    return None if answer.error_code else answer.offset


def log_bytes(cluster: Cluster, broker_id: int, name: TopicPartition) -> bytes:
    """All segments of a replica."""
    directory: Path = cluster.log_dir(broker_id) / str(name)
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
