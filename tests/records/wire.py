"""Produce and fetch batches as bytes with any request version, on a real broker."""

import time

from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.wire import WireClient

# Errors of a broker, or of a topic, that has just started: the request is repeated.
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REPLICATION_FACTOR = 38
PATIENCE_SECONDS = 30


class RecordsClient(WireClient):
    """Produces and fetches the bytes of batches with requests of any version."""

    def create_topic(self, name: str, **configs: str) -> None:
        """A topic of one partition; dots in config names are written as underscores.

        Without retention: the records have fixed, old timestamps, and Kafka's first retention check
        comes 30 s after its start.
        """
        pairs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in {"retention_ms": "-1", **configs}.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=[], configs=pairs
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            (result,) = self.ask(request, 4).topics
            if result.error_code != INVALID_REPLICATION_FACTOR or time.monotonic() > deadline:
                break
        assert result.error_code == 0, result.error_message

    def produce(self, topic: str, records: bytes, version: int) -> PartitionProduceResponse:
        """The response for partition 0; repeats the request while a new topic has no leader."""
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            acks=1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            (topic_result,) = self.ask(request, version).responses
            (result,) = topic_result.partition_responses
            if result.error_code != UNKNOWN_TOPIC_OR_PARTITION or time.monotonic() > deadline:
                return result

    def fetch(self, topic: str, version: int, offset: int = 0) -> tuple[int, bytes]:
        """Error code and record bytes of partition 0, from `offset` on."""
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000_000)
        request = FetchRequest(
            max_wait_ms=1_000,
            min_bytes=1,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        response = self.ask(request, version)
        (data,) = response.responses[0].partitions
        records = data.records or b""
        assert isinstance(records, bytes | memoryview)
        return data.error_code, bytes(records)
