"""Our codecs compared with kafka-python's, each message in the newest version that both support."""

from collections.abc import Callable, Iterator
from typing import Any

from kafka.protocol.consumer import FetchRequest as PeerFetchRequest
from kafka.protocol.consumer import FetchResponse as PeerFetchResponse
from kafka.protocol.metadata import MetadataResponse as PeerMetadataResponse
from kafka.protocol.producer import ProduceRequest as PeerProduceRequest

from bench.report import Comparison, seconds_per_call
from broker.model import Uuid
from broker.protocol.codec import decode, encode, encode_into
from broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.protocol.schema import Message

GOAL = 0.5  # of kafka-python's time
RECORDS = bytes(16 * 1024)  # batch.size of a producer with default settings


def run() -> Iterator[Comparison]:
    """Encode and decode the messages that dominate a broker's work."""
    metadata, produce = _metadata(), _produce()
    fetched = _fetched()
    yield _decode("Metadata response, 1,000 partitions", metadata, PeerMetadataResponse)
    yield _encode("Metadata response, 1,000 partitions", metadata, PeerMetadataResponse)
    yield _decode("Produce request, 6 partitions", produce, PeerProduceRequest)
    yield _decode("Fetch request, 1 partition", _fetch(1), PeerFetchRequest)
    yield _decode("Fetch request, 20 partitions", _fetch(20), PeerFetchRequest)
    yield _decode("Fetch request, 100 partitions", _fetch(100), PeerFetchRequest)
    yield _encode("Fetch response, 100 partitions", fetched, PeerFetchResponse)


def _decode(what: str, message: Message, peer: Any) -> Comparison:
    version = _version(message, peer)
    data = encode(message, version)
    return _compare(
        f"decode {what} v{version}",
        lambda: decode(type(message), data, version),
        lambda: peer.decode(data, version=version),
    )


def _encode(what: str, message: Message, peer: Any) -> Comparison:
    version = _version(message, peer)
    data = encode(message, version)
    theirs = peer.decode(data, version=version)
    theirs._header = None  # `encode` needs the attribute, which `decode` does not set
    assert theirs.encode(version=version) == data, "both sides must do the same work"
    return _compare(
        f"encode {what} v{version}",
        lambda: encode_into(message, version, bytearray()),
        lambda: theirs.encode(version=version),
    )


def _version(message: Message, peer: Any) -> int:
    return min(type(message).versions[1], int(peer.max_version))


def _compare(what: str, ours: Callable[[], object], theirs: Callable[[], object]) -> Comparison:
    our_seconds, their_seconds = seconds_per_call(ours, theirs)
    return Comparison(
        what=what,
        ours=our_seconds * 1e6,
        theirs=their_seconds * 1e6,
        peer="kafka-python 3",
        unit="µs",
        goal=GOAL,
    )


def _metadata() -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=f"broker-{node}.example.com", port=9092)
            for node in range(6)
        ],
        cluster_id="P7uJ2yM1QzK2nQZ9sM3jTA",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"topic-{topic}",
                topic_id=Uuid.random(),
                partitions=[
                    MetadataResponsePartition(
                        partition_index=partition,
                        leader_id=partition % 6,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for partition in range(100)
                ],
            )
            for topic in range(10)
        ],
    )


def _produce() -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name="orders",
                partition_data=[
                    PartitionProduceData(index=index, records=RECORDS) for index in range(6)
                ],
            )
        ],
    )


def _fetch(partitions: int) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        topics=[
            FetchTopic(
                topic_id=Uuid.random(),
                partitions=[
                    FetchPartition(
                        partition=index, fetch_offset=100_000 + index, partition_max_bytes=1 << 20
                    )
                    for index in range(partitions)
                ],
            )
        ],
    )


def _fetched() -> FetchResponse:
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic_id=Uuid.random(),
                partitions=[
                    PartitionData(
                        partition_index=index,
                        high_watermark=100_000,
                        last_stable_offset=100_000,
                        log_start_offset=0,
                        aborted_transactions=None,
                        records=RECORDS,
                    )
                    for index in range(100)
                ],
            )
        ]
    )
