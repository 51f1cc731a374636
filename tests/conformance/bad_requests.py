"""Invalid Produce and Fetch requests, and the responses of a broker to them.

`answers_of` collects the responses of a broker. Kafka's are in tests/golden/bad_requests.json;
`python -m tests.conformance.bad_requests ADDRESS` records them again.
"""

import json
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from crc32c import crc32c

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
    ForgottenTopic,
    PartitionData,
)
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from broker.records.builder import BatchSettings, build_batch, varint
from broker.records.layout import ATTRIBUTES_POSITION, CRC_POSITION, HEADER_SIZE, Codec
from broker.records.legacy import build_messages
from tests.support.wire import WireClient, read_response, request_frame

GOLDEN: Final = Path(__file__).parent.parent / "golden" / "bad_requests.json"
NOW_MS: Final = 1_700_000_000_000
_NO_BROKERS_YET: Final = ErrorCode.INVALID_REPLICATION_FACTOR
"""The error of a Kafka that has just started."""

TOPICS: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "small": {"max.message.bytes": "200"},
    "compact": {"cleanup.policy": "compact"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "strict": {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"},
    "gzip": {"compression.type": "gzip"},
    "producers": {},
    "read": {"segment.bytes": "1000"},
}


def good_batch(
    count: int = 3, settings: BatchSettings | None = None, key: bytes | None = b"k"
) -> bytes:
    """A batch that every broker accepts."""
    rows = [(at, NOW_MS + at, key, b"value", ()) for at in range(count)]
    return build_batch(rows, settings or BatchSettings())


def patched(data: bytes, position: int, form: str, value: int) -> bytes:
    """The batch with one field changed and a correct CRC."""
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    return sealed(changed)


def sealed(data: bytes | bytearray) -> bytes:
    changed = bytearray(data)
    struct.pack_into(">I", changed, CRC_POSITION, crc32c(bytes(changed[ATTRIBUTES_POSITION:])))
    return bytes(changed)


def with_records(records: bytes, count: int = 1, codec: Codec = Codec.NONE) -> bytes:
    """A batch with a valid header and these bytes as records."""
    head = bytearray(good_batch(count)[:HEADER_SIZE])
    struct.pack_into(">i", head, 8, HEADER_SIZE - 12 + len(records))
    struct.pack_into(">h", head, ATTRIBUTES_POSITION, codec)
    return sealed(bytes(head) + records)


def one_record(body: bytes) -> bytes:
    return varint(len(body)) + body


GOOD: Final = good_batch()
_OLD: Final = [(0, NOW_MS, b"k", b"value", ())]


class Bad(NamedTuple):
    """One case: what is sent to which topic, in which version."""

    name: str
    records: bytes
    version: int = 9
    topic: str = "plain"
    partition: int = 0
    acks: int = -1
    transactional_id: str | None = None


def produce_cases() -> Iterator[Bad]:
    """Batches and requests with one fault each; some look invalid and are valid."""
    yield Bad("good", GOOD)
    yield from _damaged_batches()
    yield from _wrong_fields()
    yield from _wrong_records()
    yield from _wrong_versions()
    yield from _wrong_requests()
    yield from _wrong_producers()


def _damaged_batches() -> Iterator[Bad]:
    yield Bad("no bytes", b"")
    for size in (1, 11, 12, 16, 17, 20, 60, 61, len(GOOD) - 1):
        yield Bad(f"cut to {size} bytes", GOOD[:size])
    yield Bad("crc", GOOD[:CRC_POSITION] + b"\0\0\0\0" + GOOD[CRC_POSITION + 4 :])
    yield Bad("bit in the last value", GOOD[:-2] + bytes([GOOD[-2] ^ 1]) + GOOD[-1:])
    for length in (-1, 0, 1, 48, 49, len(GOOD) - 13, len(GOOD) - 11, 2**31 - 1):
        yield Bad(f"batch length {length}", GOOD[:8] + struct.pack(">i", length) + GOOD[12:])
    for magic in (-1, 0, 1, 3, 127):
        yield Bad(f"magic {magic}", GOOD[:16] + struct.pack(">b", magic) + GOOD[17:])
    yield Bad("bytes behind the batch", GOOD + b"more")
    yield Bad("two batches", GOOD + GOOD)


def _wrong_fields() -> Iterator[Bad]:
    for count in (-1, 0, 2, 4, 2**31 - 1):
        yield Bad(f"records count {count}", patched(GOOD, 57, ">i", count))
    for delta in (-1, 0, 1, 3, 2**31 - 1):
        yield Bad(f"last offset delta {delta}", patched(GOOD, 23, ">i", delta))
    for attributes in (5, 6, 7, 0x08, 0x20, 0x40, 0x80, 0x7F00):
        yield Bad(
            f"attributes {attributes:#x}", patched(GOOD, ATTRIBUTES_POSITION, ">h", attributes)
        )
    yield Bad("base offset 5", struct.pack(">q", 5) + GOOD[8:])
    yield Bad("base offset -1", struct.pack(">q", -1) + GOOD[8:])
    yield Bad("leader epoch 99", GOOD[:12] + struct.pack(">i", 99) + GOOD[16:])
    yield Bad("base timestamp -5", patched(GOOD, 27, ">q", -5))
    yield Bad("max timestamp 0", patched(GOOD, 35, ">q", 0))
    yield Bad("max timestamp -1", patched(GOOD, 35, ">q", -1))
    yield Bad("in an hour, where a second is allowed", _at(3_600_000), topic="strict")
    yield Bad("an hour ago, where a second is allowed", _at(-3_600_000), topic="strict")
    yield Bad("in two hours", _at(7_200_000))
    yield Bad("log append time from a client", GOOD, topic="stamped")


def _at(shift_ms: int) -> bytes:
    now = int(time.time() * 1000) + shift_ms
    return build_batch([(0, now, b"k", b"v", ()), (1, now + 1, b"k", b"v", ())])


def _wrong_records() -> Iterator[Bad]:
    body = b"\0" + varint(0) + varint(0) + varint(1) + b"k" + varint(1) + b"v" + varint(0)
    compacted = "compact"  # here every record is validated
    yield Bad("one good record", with_records(one_record(body)))
    yield Bad("no records", with_records(b""))
    yield Bad("record longer than the batch", with_records(varint(100) + body), topic=compacted)
    yield Bad("record shorter than it is", with_records(varint(3) + body), topic=compacted)
    yield Bad("negative record length", with_records(varint(-5) + body), topic=compacted)
    yield Bad("bytes behind the records", with_records(one_record(body) + b"xyz"), topic=compacted)
    yield Bad("endless varint", with_records(b"\xff" * 11), topic=compacted)
    long_key = b"\0" + varint(0) + varint(0) + varint(999) + b"k" + varint(1) + b"v" + varint(0)
    yield Bad("key longer than its record", with_records(one_record(long_key)), topic=compacted)
    headers = body[:-1] + varint(-1)
    yield Bad("negative headers count", with_records(one_record(headers)), topic=compacted)
    many = body[:-1] + varint(2**31 - 1)
    yield Bad("two billion headers", with_records(one_record(many)), topic=compacted)
    null_name = body[:-1] + varint(1) + varint(-1) + varint(-1)
    yield Bad("header without a name", with_records(one_record(null_name)), topic=compacted)
    far = b"\0" + varint(0) + varint(7) + varint(1) + b"k" + varint(1) + b"v" + varint(0)
    yield Bad("offset delta 7 in the only record", with_records(one_record(far)), topic=compacted)
    yield Bad("no key, compacted", good_batch(3, None, None), topic=compacted)
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        garbage = with_records(b"\x1f\x8b\x08garbage that is not compressed", 1, codec)
        yield Bad(f"{codec.name}, malformed", garbage)
        yield Bad(f"{codec.name}, malformed, to be recompressed", garbage, topic="gzip")


def _wrong_versions() -> Iterator[Bad]:
    for magic in (0, 1):
        old = build_messages(_OLD, magic)
        for version in (0, 1, 2, 3, 9):
            yield Bad(f"magic {magic}", old, version)
        crc = old[:12] + b"\0\0\0\0" + old[16:]
        yield Bad(f"crc of magic {magic}", crc, 2)
        yield Bad(f"magic {magic} without a key, compacted", _keyless(magic), 2, "compact")
        for size in (5, 13, 17, len(old) - 1):
            yield Bad(f"magic {magic} cut to {size} bytes", old[:size], 2)
        yield Bad(f"magic {magic} twice", old + old, 2)
        for size in (-1, 0, 13, 21, 2**31 - 1):
            yield Bad(
                f"magic {magic} of size {size}", old[:8] + struct.pack(">i", size) + old[12:], 2
            )
    yield Bad("magic 2", GOOD, 2)
    yield Bad("two of magic 2", GOOD + GOOD, 2)
    yield Bad("no bytes", b"", 2)
    zstd = good_batch(3, BatchSettings(codec=Codec.ZSTD))
    for version in (2, 3, 6, 7):
        yield Bad("zstd", zstd, version)


def _keyless(magic: int) -> bytes:
    return build_messages([(0, NOW_MS, None, b"value", ())], magic)


def _wrong_requests() -> Iterator[Bad]:
    for acks in (-2, 0, 2, 5):
        yield Bad(f"acks {acks}", GOOD, acks=acks)
    yield Bad("acks 0 to an unknown partition", GOOD, partition=9, acks=0)
    for partition in (-1, 1, 2**31 - 1):
        yield Bad(f"partition {partition}", GOOD, partition=partition)
    for version in (3, 9, 11):
        yield Bad("unknown topic", GOOD, version, topic="unknown")
    for topic in ("", ".", "a b", "x" * 250, "__consumer_offsets", "__transaction_state"):
        yield Bad(f"topic {topic[:20]!r}", GOOD, topic=f"={topic}")
    yield Bad("batch above max.message.bytes", good_batch(20), topic="small")
    yield Bad(
        "compressible batch above max.message.bytes",
        good_batch(200, BatchSettings(codec=Codec.GZIP)),
        topic="small",
    )
    yield Bad(
        "old batch above max.message.bytes",
        build_messages([(0, NOW_MS, b"k", b"v" * 300, ())], 1),
        2,
        "small",
    )


def _wrong_producers() -> Iterator[Bad]:
    """The order matters: later cases depend on the state that earlier ones leave."""
    topic = "producers"
    yield Bad("first sequence 0", _by(0, 0), topic=topic)
    yield Bad("the same again", _by(0, 0), topic=topic)
    yield Bad("a gap in the sequence", _by(0, 9), topic=topic)
    yield Bad("next sequence", _by(0, 3), topic=topic)
    yield Bad("new epoch, sequence 5", _by(1, 5), topic=topic)
    yield Bad("new epoch, sequence 0", _by(1, 0), topic=topic)
    yield Bad("epoch of the past", _by(0, 6), topic=topic)
    yield Bad("unknown producer at sequence 5", _by(0, 5, 888_000), topic=topic)
    yield Bad("producer id -1 with an epoch", patched(GOOD, 51, ">h", 3), topic=topic)
    yield Bad("producer id without an epoch", patched(_by(0, 0, 999), 51, ">h", -1), topic=topic)
    yield Bad("producer id without a sequence", patched(_by(0, 0, 999), 53, ">i", -1), topic=topic)
    yield Bad("producer id -7", patched(_by(0, 0, 999), 43, ">q", -7), topic=topic)
    control = BatchSettings(producer_id=5, producer_epoch=0, is_control=True, is_transactional=True)
    yield Bad("control batch of a client", good_batch(1, control), topic=topic)
    transactional = good_batch(
        1, BatchSettings(producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    )
    yield Bad("transactional batch without an id", transactional, topic=topic)
    yield Bad("unknown transaction", transactional, topic=topic, transactional_id="unknown")
    yield Bad("unknown transaction, v11", transactional, 11, topic, transactional_id="unknown")
    yield Bad("plain batch with a transactional id", GOOD, topic=topic, transactional_id="unknown")
    yield Bad("empty transactional id", transactional, topic=topic, transactional_id="")


def _by(epoch: int, sequence: int, producer_id: int = 777_000) -> bytes:
    return good_batch(
        3, BatchSettings(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    )


# Fetch


def fetch_cases(topic: str, topic_id: Uuid) -> Iterator[tuple[str, FetchRequest, int]]:
    """Name, request and version. The topic has ten batches of three records."""

    def one(version: int, **changes: Any) -> FetchRequest:
        fields = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10_000}
        whole = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 100_000}
        name = changes.pop("topic", topic)
        own = {key: changes.pop(key) for key in list(changes) if key in FETCH_PARTITION}
        asked = FetchPartition(**(fields | own))
        by_id = {"topic_id": changes.pop("topic_id", topic_id)}
        named: dict[str, Any] = by_id if version >= 13 else {"topic": name}
        return FetchRequest(topics=[FetchTopic(partitions=[asked], **named)], **(whole | changes))

    def case(name: str, version: int, **changes: Any) -> tuple[str, FetchRequest, int]:
        return name, one(version, **changes), version

    for version in (0, 1, 2, 3, 4, 11, 12, 13, 17):
        yield case("all", version)
        yield case("from the middle of a batch", version, fetch_offset=4)
        yield case("a little", version, partition_max_bytes=1)
        yield case("at the end", version, fetch_offset=30)
        yield case("beyond the end", version, fetch_offset=31)
        yield case("offset -1", version, fetch_offset=-1)
        yield case("partition 9", version, partition=9)
        yield case("partition -1", version, partition=-1)
        yield case("unknown", version, topic="unknown", topic_id=Uuid(b"u" * 16))
    for version in (4, 12, 17):
        for size in (0, -1, 2**31 - 1):
            yield case(f"partition_max_bytes {size}", version, partition_max_bytes=size)
            yield case(f"max_bytes {size}", version, max_bytes=size)
        yield case("invalid name", version, topic="a b", topic_id=Uuid.ZERO)
        yield case("isolation level 7", version, isolation_level=7)
        yield case("isolation level 1", version, isolation_level=1)
        yield case("negative wait", version, max_wait_ms=-5, min_bytes=10_000_000)
        yield case("negative min bytes", version, min_bytes=-5)
        yield case("nothing more comes", version, max_wait_ms=20, min_bytes=10_000_000)
    for version in (9, 12, 17):
        yield case("leader epoch of the future", version, current_leader_epoch=99)
        yield case("leader epoch -5", version, current_leader_epoch=-5)
        yield case("leader epoch 0", version, current_leader_epoch=0)
    for version in (7, 12, 17):
        yield case("unknown session 5", version, session_id=5, session_epoch=1)
        yield case("session 5, closed", version, session_id=5, session_epoch=-1)
        yield case("session 0 at epoch 3", version, session_id=0, session_epoch=3)
        yield case("session epoch -9", version, session_id=0, session_epoch=-9)
        forgotten = [ForgottenTopic(topic=topic, topic_id=topic_id, partitions=[0, 7])]
        yield case("forgotten without a session", version, forgotten_topics_data=forgotten)
        yield "nothing", FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), version
    for version in (4, 11):
        yield case("as broker 55", version, replica_id=55)
        yield case("as a debugger", version, replica_id=-2)


FETCH_PARTITION: Final = frozenset(
    {"partition", "fetch_offset", "partition_max_bytes", "current_leader_epoch"}
)


# What a broker answers


def answers_of(address: str, prefix: str) -> dict[str, str]:
    """The broker's response to each case, by name; topics get the prefix."""
    answers: dict[str, str] = {}
    ids = create_topics(address, prefix)
    for bad in produce_cases():
        answers[f"produce v{bad.version}: {bad.name}"] = _produced(address, bad, prefix)
    for at in range(10):
        _produced(address, Bad(str(at), good_batch(3), topic="read"), prefix)
    for name, request, version in fetch_cases(f"{prefix}read", ids["read"]):
        answers[f"fetch v{version}: {name}"] = _fetched(address, request, version)
    return answers


def create_topics(address: str, prefix: str) -> dict[str, Uuid]:
    """Create the topics, wait until they have leaders, and return their ids."""
    topics = [
        CreatableTopic(
            name=prefix + name,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name, configs in TOPICS.items()
    ]
    with WireClient(address) as wire:
        request = CreateTopicsRequest(topics=topics, timeout_ms=30_000)
        while (made := wire.ask(request, 7).topics)[0].error_code == _NO_BROKERS_YET:
            pass
        assert all(topic.error_code == 0 for topic in made), made
        for kind, name in enumerate(("somebody", "something")):  # makes the broker's own topics
            asked = FindCoordinatorRequest(key=name, key_type=kind)
            while wire.ask(asked, 3).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                pass
    for name in TOPICS:
        while "UNKNOWN" in _produced(address, Bad("", b"", topic=name), prefix):
            pass
    return {topic.name.removeprefix(prefix): topic.topic_id for topic in made}


def _produced(address: str, bad: Bad, prefix: str) -> str:
    name = bad.topic[1:] if bad.topic.startswith("=") else prefix + bad.topic
    data = PartitionProduceData(index=bad.partition, records=bad.records)
    request = ProduceRequest(
        transactional_id=bad.transactional_id,
        acks=bad.acks,
        timeout_ms=5_000,
        topic_data=[TopicProduceData(name=name, partition_data=[data])],
    )
    frame = _ask(address, request, bad.version, is_silent=bad.acks == 0)
    if isinstance(frame, str):
        return frame
    response: Any = read_response(frame, 0, bad.version)
    return _outcome(response.responses[0].partition_responses[0])


def _outcome(answer: PartitionProduceResponse) -> str:
    text = ErrorCode.name_of(answer.error_code)
    if answer.error_code == ErrorCode.NONE:
        return text
    records = [error.batch_index for error in answer.record_errors]
    return (
        f"{text} base={answer.base_offset} records={records} {answer.current_leader.leader_epoch}"
    )


def _fetched(address: str, request: FetchRequest, version: int) -> str:
    frame = _ask(address, request, version)
    if isinstance(frame, str):
        return frame
    response: Any = read_response(frame, 1, version)
    whole = ErrorCode.name_of(response.error_code) + (" session" if response.session_id else "")
    parts = [_part(data, version) for topic in response.responses for data in topic.partitions]
    return " | ".join([whole, *parts])


def _part(data: PartitionData, version: int) -> str:
    # Kafka pads down-converted records with a partial message; we do not.
    size = len(data.records or b"") if version >= 4 else "any"
    marks = (data.high_watermark, data.last_stable_offset, data.log_start_offset)
    aborted = data.aborted_transactions
    return f"{ErrorCode.name_of(data.error_code)} {marks} bytes={size} aborted={aborted}"


def _ask(address: str, request: Any, version: int, *, is_silent: bool = False) -> bytes | str:
    with WireClient(address) as wire:
        wire.send(request_frame(request, version))
        if is_silent:  # gets a response only if the connection was left open
            wire.send(request_frame(CreateTopicsRequest(topics=[], timeout_ms=1), 5))
            return "closed" if wire.receive() is None else "open"
        return wire.receive() or "closed"


if __name__ == "__main__":
    told = answers_of(sys.argv[1], f"bad-{time.time_ns()}-")
    GOLDEN.write_text(json.dumps(told, indent=1) + "\n")
