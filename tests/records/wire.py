"""A bare connection to a real broker: any API in any version, as clients of any age speak it."""

import socket
import time
from typing import Any, Self, TypeVar

from broker.protocol.codec import decode, decode_from, encode
from broker.protocol.headers import RequestHeader, ResponseHeader
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from broker.protocol.schema import Request, Response

# What a broker answers while it, or a topic, has only just come up: it is asked again.
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REPLICATION_FACTOR = 38
PATIENCE_SECONDS = 30

ResponseT = TypeVar("ResponseT", bound=Response)


class Wire:
    """One connection; every call waits for its answer. Versions are those before flexible ones."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._reader = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._socket.close()

    def ask(self, request: Request[Any], answer: type[ResponseT], version: int) -> ResponseT:
        """The answer to a request in this version."""
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=1,
            client_id="records-test",
        )
        frame = encode(header, 1) + encode(request, version)
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(self._reader.read(4), "big")
        body = self._reader.read(size)
        _, position = decode_from(ResponseHeader, body, 0, 0)
        return decode(answer, body[position:], version)

    def create_topic(self, name: str, **configs: str) -> None:
        """A topic of one partition; dots in config names are written as underscores."""
        pairs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=[], configs=pairs
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            (result,) = self.ask(request, CreateTopicsResponse, 4).topics
            if result.error_code != INVALID_REPLICATION_FACTOR or time.monotonic() > deadline:
                break
        assert result.error_code == 0, result.error_message

    def produce(self, topic: str, records: bytes, version: int) -> PartitionProduceResponse:
        """The answer for partition 0; a topic just created is waited for by asking again."""
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            acks=1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            (topic_result,) = self.ask(request, ProduceResponse, version).responses
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
        response = self.ask(request, FetchResponse, version)
        (data,) = response.responses[0].partitions
        records = data.records or b""
        assert isinstance(records, bytes | memoryview)
        return data.error_code, bytes(records)
