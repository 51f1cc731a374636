"""Damaged batches sent to our broker and to a real Kafka: the same verdicts, the same stored bytes.

Every batch is a request of its own, because one bad batch fails Kafka's whole request. Requests are
pipelined. Both brokers get the same batches in the same order, so offsets and producer state must
stay equal as well.

Two kinds of difference are only counted, because both brokers refuse the batch:

* A compressed stream that is damaged, or a record of gigabytes in it. Which code Kafka answers then
  depends on how much its streams had buffered and on its heap.
* Bytes after the batch that look like another one, with the attribute of a transaction. Kafka reads
  that attribute before it counts batches or checks a crc.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.errors import CorruptRecord, ErrorCode
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from broker.records.batch import Batch, iterate_batches
from broker.records.compression import decompress
from broker.records.layout import HEADER_SIZE
from tests.fuzz.batches import damaged_batch
from tests.log.poison import batch, records
from tests.support.wire import WireClient, read_response, request_frame

TOPICS: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "compact": {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "strict": {
        "message.timestamp.before.max.ms": "3600000",
        "message.timestamp.after.max.ms": "3600000",
    },
    **{
        codec: {"compression.type": codec}
        for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed")
    },
}
PARTITIONS: Final = 40
"""Batches in flight; each partition gets one of every round."""
VERSION: Final = 9
_MINOR: Final = (
    {"UNKNOWN_SERVER_ERROR", "INVALID_RECORD"},
    {"CORRUPT_MESSAGE", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"},
)


class Compared:
    """The two brokers, and what they answered."""

    def __init__(self, ours: WireClient, theirs: WireClient, prefix: str) -> None:
        self.brokers = (ours, theirs)
        self.prefix = prefix
        self.verdicts: Counter[str] = Counter()
        self.differences: list[str] = []
        self.other_refusals: list[str] = []

    def send_round(self, rng: random.Random, now_ms: int) -> None:
        """One damaged batch to each partition of each topic."""
        for topic in TOPICS:
            damaged = [damaged_batch(rng, now_ms) for _ in range(PARTITIONS)]
            for wire in self.brokers:
                _send(wire, self.prefix + topic, damaged)
            ours, theirs = ([_receive(wire) for _ in damaged] for wire in self.brokers)
            for data, own, kafka in zip(damaged, ours, theirs, strict=True):
                code = ErrorCode.name_of(kafka.error_code)
                self.verdicts[code] += 1
                if _outcome(own) != _outcome(kafka):
                    found = ErrorCode.name_of(own.error_code)
                    is_minor = {found, code} in _MINOR
                    (self.other_refusals if is_minor else self.differences).append(
                        f"{topic}-{kafka.index}: {found} {own.base_offset}, Kafka: {code} "
                        f"{kafka.base_offset}: {data.hex()}"
                    )

    def create_topics(self) -> None:
        """Create them on both and wait for their leaders."""
        wanted = [
            CreatableTopic(
                name=self.prefix + name,
                num_partitions=PARTITIONS,
                replication_factor=1,
                configs=[CreatableTopicConfig(name=key, value=configs[key]) for key in configs],
            )
            for name, configs in TOPICS.items()
        ]
        good = batch(records(1), 1)
        for wire in self.brokers:
            made = wire.ask(CreateTopicsRequest(topics=wanted, timeout_ms=150_000), 7).topics
            assert all(topic.error_code == 0 for topic in made), made
            for name in TOPICS:
                _append_good(wire, self.prefix + name, good)


def _append_good(wire: WireClient, topic: str, good: bytes) -> None:
    """Append a batch to every partition, when it has a leader."""
    for index in range(PARTITIONS):
        while True:
            _send_one(wire, topic, index, good)
            if _receive(wire).error_code == ErrorCode.NONE:
                break
            time.sleep(0.1)


def _outcome(answer: PartitionProduceResponse) -> tuple[int, int, int]:
    """What must be equal."""
    return answer.index, answer.error_code, answer.base_offset


def _send(wire: WireClient, topic: str, batches: list[bytes]) -> None:
    for index, data in enumerate(batches):
        _send_one(wire, topic, index, data)


def _send_one(wire: WireClient, topic: str, index: int, data: bytes) -> None:
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=5_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=index, records=data)]
            )
        ],
    )
    wire.send(request_frame(request, VERSION))


def _receive(wire: WireClient) -> PartitionProduceResponse:
    frame = wire.receive()
    assert frame is not None, "the broker closed the connection"
    response = read_response(frame, 0, VERSION)
    part: PartitionProduceResponse = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    return part


# --- what is stored -----------------------------------------------------------------------------


def stored_differences(ours: Path, theirs: Path, prefix: str) -> Iterator[str]:
    """Differences between the logs of all partitions in two log directories."""
    for topic in TOPICS:
        for index in range(PARTITIONS):
            name = f"{prefix}{topic}-{index}"
            own, kafka = (list(_stored(root / name)) for root in (ours, theirs))
            if len(own) != len(kafka):
                yield f"{name}: {len(own)} batches, Kafka: {len(kafka)}"
            for mine, other in zip(own, kafka, strict=False):
                if mine != other:
                    yield f"{name}: {mine}, Kafka: {other}"


def _stored(directory: Path) -> Iterator[tuple[object, ...]]:
    for log in sorted(directory.glob("*.log")):
        for found in iterate_batches(memoryview(log.read_bytes())):
            yield _shown(found)


def _shown(found: Batch) -> tuple[object, ...]:
    """What must be equal: all fields but sizes, crcs and times that the broker set."""
    header = found.header
    is_stamped = bool(header.attributes & 0x08)
    times = (header.base_timestamp, None if is_stamped else header.max_timestamp)
    producer = (header.producer_id, header.producer_epoch, header.base_sequence)
    try:
        content = decompress(found.codec, found.view[HEADER_SIZE:]).hex()
    except CorruptRecord as error:
        content = error.message
    numbers = (header.base_offset, header.last_offset_delta, header.records_count)
    return header.magic, header.attributes, numbers, times, producer, content
