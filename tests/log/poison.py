"""Malformed batches with a correct crc, and a broker's response to each.

`answers_of` sends them to any broker, Kafka or ours, and gives the partition's response in full:
error code, offsets, record errors and message. golden/poison.json holds those of Kafka 3.9.1.
"""

import gzip
import re
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import cramjam
from crc32c import crc32c

from broker.errors import ErrorCode
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
from broker.records.builder import varint
from broker.records.compression import compress
from broker.records.layout import Codec
from tests.support.wire import WireClient, read_response, request_frame

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "poison.json"

TOPICS: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "compact": {"cleanup.policy": "compact"},
    "lz4": {"compression.type": "lz4"},
    "uncompressed": {"compression.type": "uncompressed"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "strict": {
        "message.timestamp.before.max.ms": "3600000",
        "message.timestamp.after.max.ms": "3600000",
    },
}
_RETRIED: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
)
_NUMBERS: Final = re.compile(r"\d{10,}")


class Poison(NamedTuple):
    """One case: the bytes to send, and the topics to send them to."""

    name: str
    records: bytes
    topics: tuple[str, ...] = ("plain",)
    version: int = 9


def record(
    delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    timestamp_delta: int = 0,
    headers: bytes = b"\0",
) -> bytes:
    """One record of format 2; `headers` includes their count."""
    body = b"\0" + varint(timestamp_delta) + varint(delta) + _span(key) + _span(value) + headers
    return varint(len(body)) + body


def _span(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def sized(body: bytes) -> bytes:
    """A record: these fields, preceded by their length."""
    return varint(len(body)) + body


def records(count: int) -> bytes:
    """Valid records with keys."""
    return b"".join(record(index, b"k%d" % index) for index in range(count))


def batch(
    payload: bytes,
    count: int,
    attributes: int = 0,
    timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    last_delta: int | None = None,
) -> bytes:
    """A batch with a correct crc, whatever else is wrong."""
    first = int(time.time() * 1000) if timestamp is None else timestamp
    last = first if max_timestamp is None else max_timestamp
    delta = count - 1 if last_delta is None else last_delta
    fields = struct.pack(">hiqqqhii", attributes, delta, first, last, *producer, count)
    checked = fields + payload
    head = struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c(checked))
    return head + checked


def message(
    magic: int,
    value: bytes | None,
    key: bytes | None = b"k",
    attributes: int = 0,
    timestamp: int | None = None,
    offset: int = 0,
) -> bytes:
    """A message of format 0 or 1."""
    at = int(time.time() * 1000) if timestamp is None else timestamp
    time_field = struct.pack(">q", at) if magic else b""
    checked = bytes([magic, attributes]) + time_field + _old_span(key) + _old_span(value)
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked


def _old_span(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def zstd(data: bytes) -> bytes:
    """Compressed as a producer does."""
    return bytes(cramjam.zstd.compress(data, level=3))


GZIP, SNAPPY, LZ4, ZSTD = (int(codec) for codec in list(Codec)[1:])
ALL: Final = tuple(TOPICS)
REWRITING: Final = ("plain", "lz4", "uncompressed")


def cases() -> Iterator[Poison]:
    """Batches with one defect each, and some that only look wrong."""
    yield Poison("good", batch(records(3), 3), ALL)
    yield from _uncompressed()
    yield from _compressed()
    yield from _codecs()
    yield from _headers()
    yield from _times()
    yield from _old_formats()


def _uncompressed() -> Iterator[Poison]:
    some = ("plain", "compact", "lz4")
    yield Poison("garbage", batch(b"\xff" * 100, 1), some)
    yield Poison("zeros", batch(b"\0" * 50, 1), some)
    yield Poison("no records", batch(b"", 1), some)
    yield Poison("count 5, records 2, then zeros", batch(records(2) + b"\0" * 40, 5), some)
    yield Poison("count 5, records 2", batch(records(2), 5), some)
    yield Poison("count 2, records 5", batch(records(5), 2), some)
    yield Poison("bytes after the records", batch(records(2) + b"junkjunk", 2), some)
    yield Poison("offset deltas 7", batch(record(7) * 3, 3), some)
    yield Poison("offset deltas descending", batch(record(2) + record(1) + record(0), 3), some)
    yield Poison("offset delta -3", batch(record(-3), 1), some)
    for name, one in _odd_records():
        yield Poison(name, batch(one, 1), some)


def _odd_records() -> Iterator[tuple[str, bytes]]:
    fields = b"\0\0\0"
    body = fields + b"\2k\2v\0"
    yield "length too short", varint(len(body) - 1) + body
    yield "length too long", varint(len(body) + 1) + body
    yield "length negative", varint(-5) + body
    yield "length of five bytes", b"\x92\x80\x80\x80\x00" + body
    yield "length of five bytes, bits beyond 32", b"\x92\x80\x80\x80\x70" + body
    yield "length of six bytes", b"\x92\x80\x80\x80\x80\x00" + body
    yield "length cut", b"\x92\x80"
    yield "only a length", varint(9)
    yield "value length beyond", sized(fields + b"\2k" + varint(2**31 - 1) + b"xxxx")
    yield "value length just beyond", sized(fields + b"\2k" + varint(3) + b"v\0")
    yield "key length beyond", sized(fields + varint(999) + b"k\2v\0")
    yield "key null", sized(fields + b"\1\2v\0")
    yield "key length -2", sized(fields + varint(-2) + b"\2v\0")
    yield "key length -70", sized(fields + varint(-70) + b"\2v\0")
    yield "value length -2", sized(fields + b"\2k" + varint(-2) + b"\0")
    yield "key length of six bytes", sized(fields + b"\x82\x80\x80\x80\x80\x00k\2v\0")
    yield "key length, bits beyond 32", sized(fields + b"\x82\x80\x80\x80\x70k\2v\0")
    yield "timestamp of ten bytes", sized(b"\0" + b"\x80" * 9 + b"\0\0\2k\2v\0")
    yield "timestamp, bits beyond 64", sized(b"\0" + b"\x80" * 9 + b"\x7e\0\2k\2v\0")
    yield "timestamp of eleven bytes", sized(b"\0" + b"\x80" * 10 + b"\0\0\2k\2v\0")
    yield "attributes set", sized(b"\x7f\0\0\2k\2v\0")
    yield "headers count negative", sized(body[:-1] + varint(-3))
    yield "headers count beyond", sized(body[:-1] + varint(2**31 - 1))
    yield "headers count above headers", sized(body[:-1] + varint(2) + b"\2h\2x")
    yield "header key null", sized(body[:-1] + varint(1) + varint(-1) + varint(-1))
    yield "header value null", sized(body[:-1] + varint(1) + b"\2h" + varint(-1))
    yield "header value length -2", sized(body[:-1] + varint(1) + b"\2h" + varint(-2))
    yield "header value beyond", sized(body[:-1] + varint(1) + b"\2h" + varint(90))
    yield "header key is no UTF-8", sized(body[:-1] + varint(1) + b"\4\xff\xfe\2x")
    yield "header good", sized(body[:-1] + varint(1) + b"\2h\2x")


def _compressed() -> Iterator[Poison]:
    some = ("plain", "compact", "uncompressed")
    for name, one in _odd_records():
        yield Poison(f"zstd: {name}", batch(zstd(one), 1, ZSTD), some)
    yield Poison("zstd: good", batch(zstd(records(3)), 3, ZSTD), ALL)
    yield Poison("zstd: garbage inside", batch(zstd(b"\xff" * 100), 1, ZSTD), some)
    yield Poison("zstd: zeros inside", batch(zstd(b"\0" * 100), 1, ZSTD), some)
    yield Poison("zstd: nothing inside", batch(zstd(b""), 1, ZSTD), some)
    yield Poison("zstd: count 1000, records 3", batch(zstd(records(3)), 1000, ZSTD), some)
    yield Poison("zstd: count 2^31-1", batch(zstd(records(3)), 2**31 - 1, ZSTD), some)
    yield Poison("zstd: count 2, records 3", batch(zstd(records(3)), 2, ZSTD), some)
    yield Poison("zstd: bytes after the records", batch(zstd(records(3) + b"x"), 3, ZSTD), some)
    yield Poison("zstd: offset deltas 0", batch(zstd(record(0) * 3), 3, ZSTD), some)
    yield Poison("zstd: offset deltas 0, no keys", batch(zstd(record(0, None) * 3), 3, ZSTD), some)
    yield Poison("zstd: key null", batch(zstd(record(0, None)), 1, ZSTD), some)


def _codecs() -> Iterator[Poison]:
    good = records(3)
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        name, whole = codec.name.lower(), compress(codec, good)
        yield Poison(f"{name}: good", batch(whole, 3, codec), REWRITING)
        yield Poison(f"{name}: not compressed", batch(good, 3, codec), REWRITING)
        yield Poison(f"{name}: no bytes", batch(b"", 3, codec), REWRITING)
        yield Poison(f"{name}: 0xff", batch(b"\xff" * 60, 1, codec), REWRITING)
        yield Poison(f"{name}: 1 byte short", batch(whole[:-1], 3, codec), REWRITING)
        yield Poison(f"{name}: 5 bytes short", batch(whole[:-5], 3, codec), REWRITING)
        yield Poison(f"{name}: half", batch(whole[: len(whole) // 2], 3, codec), REWRITING)
        yield Poison(f"{name}: twice", batch(whole + whole, 6, codec), REWRITING)
        yield Poison(f"{name}: twice, count of one", batch(whole + whole, 3, codec), REWRITING)
        yield Poison(f"{name}: then junk", batch(whole + b"junkjunkjunk", 3, codec), REWRITING)
        yield Poison(f"{name}: then zeros", batch(whole + bytes(12), 3, codec), REWRITING)
    raw_snappy = bytes(cramjam.snappy.compress_raw(good))
    yield Poison("snappy: without framing", batch(raw_snappy, 3, SNAPPY), REWRITING)
    claim = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\x7f\xff\xff\xff"
    yield Poison("snappy: block of 2 GiB", batch(claim, 1, SNAPPY), REWRITING)
    huge = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + struct.pack(">i", 5) + b"\xff\xff\xff\xff\x07"
    yield Poison("snappy: claims 2 GiB", batch(huge, 1, SNAPPY), REWRITING)
    yield Poison("lz4: garbage", batch(b"\x04\x22\x4d\x18" + b"\xff" * 20, 1, LZ4), REWRITING)
    checked = bytearray(cramjam.lz4.compress(good))
    yield Poison("lz4: content checksum", batch(bytes(checked), 3, LZ4), REWRITING)
    checked[-1] ^= 1
    yield Poison("lz4: content checksum wrong", batch(bytes(checked), 3, LZ4), REWRITING)
    marked = compress(Codec.LZ4, good)[:-4] + b"\0\0\0\x80"
    yield Poison("lz4: end mark of an uncompressed block", batch(marked, 3, LZ4), REWRITING)
    cut = compress(Codec.SNAPPY, good) + b"\0\0\0"
    yield Poison("snappy: three bytes after the last block", batch(cut, 3, SNAPPY), REWRITING)
    short = compress(Codec.SNAPPY, good)[:10]
    yield Poison("snappy: header cut", batch(short, 3, SNAPPY), REWRITING)
    flagged = bytearray(gzip.compress(good))
    flagged[3] = 0xE0
    yield Poison("gzip: reserved flags", batch(bytes(flagged), 3, GZIP), REWRITING)
    odd = sized(b"\1\0\0\2k\2v\2\2\xff\3")
    yield Poison("zstd: record in another form", batch(zstd(odd), 1, ZSTD), REWRITING)
    yield Poison(
        "zstd: wrong record, then junk", batch(zstd(b"\x05") + b"junk", 1, ZSTD), REWRITING
    )
    trailer = bytearray(gzip.compress(good))
    trailer[-6] ^= 1
    yield Poison("gzip: crc wrong", batch(bytes(trailer), 3, GZIP), REWRITING)
    for number in (5, 6, 7):
        yield Poison(f"codec {number}", batch(good, 3, number), REWRITING)


def _headers() -> Iterator[Poison]:
    one = records(1)
    yield Poison("control batch", batch(one, 1, 0x20))
    yield Poison("control and transactional", batch(one, 1, 0x30, producer=(5, 0, 0)))
    yield Poison("delete horizon", batch(one, 1, 0x40), ("plain", "lz4"))
    yield Poison("unused attributes", batch(one, 1, 0x7F00), ("plain", "stamped"))
    yield Poison("count 0", batch(b"", 0))
    yield Poison("count -1", batch(one, -1))
    yield Poison("count 1, last delta 1", batch(one, 1, last_delta=1))
    yield Poison("count 3, last delta 0", batch(records(3), 3, last_delta=0))
    yield Poison("producer without sequence", batch(one, 1, producer=(77, 0, -1)))
    two = ("plain", "lz4")
    yield Poison("producer id -2", batch(one, 1, producer=(-2, 0, 0)), two)
    yield Poison("producer id -2 without epoch", batch(one, 1, producer=(-2, -1, -1)), two)
    yield Poison("producer without epoch", batch(one, 1, producer=(78, -1, 0)), two)
    yield Poison("epoch and sequence without producer", batch(one, 1, producer=(-1, 3, 3)), two)


def _times() -> Iterator[Poison]:
    some = ("plain", "strict", "stamped", "lz4")
    one = records(1)
    now = int(time.time() * 1000)
    yield Poison("max timestamp 2^63-1 in the header only", batch(one, 1, 0, now, 2**63 - 1), some)
    yield Poison("max timestamp 0 in the header only", batch(one, 1, 0, now, 0), some)
    yield Poison("timestamp 2^63-1", batch(one, 1, 0, 2**63 - 1), some)
    yield Poison("timestamp -2^63", batch(one, 1, 0, -(2**63)), some)
    yield Poison("timestamp -5", batch(one, 1, 0, -5), some)
    yield Poison("timestamp -1", batch(one, 1, 0, -1), some)
    yield Poison("timestamp 0", batch(one, 1, 0, 0), some)
    yield Poison("timestamp in a day", batch(one, 1, 0, now + 86_400_000), some)
    yield Poison("timestamp a day ago", batch(one, 1, 0, now - 86_400_000), some)
    mixed = record(0) + record(1, None, timestamp_delta=-86_400_000) + record(2, None)
    yield Poison("second of three is old", batch(mixed, 3, 0, now), (*some, "compact"))
    yield Poison(
        "zstd: second of three is old", batch(zstd(mixed), 3, ZSTD, now), (*some, "compact")
    )
    wrapped = record(0) + record(1, timestamp_delta=2**63 - 1)
    yield Poison("timestamps wrap", batch(wrapped, 2, 0, now), some)
    stamp = 0x08
    yield Poison("LogAppendTime", batch(records(2), 2, stamp), (*some, "compact"))
    yield Poison("LogAppendTime of a day ago", batch(one, 1, stamp, now, now - 86_400_000), some)
    yield Poison("LogAppendTime of -1", batch(records(2), 2, stamp, now, -1), some)


def _old_formats() -> Iterator[Poison]:
    some = ("plain", "compact", "lz4", "stamped", "strict")
    for magic in (0, 1):
        old = f"magic {magic}:"
        good = message(magic, b"v")
        inner = b"".join(message(magic, b"v", offset=at) for at in range(3))
        yield Poison(f"{old} good", good, some, 2)
        yield Poison(f"{old} three", good * 3, some, 2)
        yield Poison(f"{old} no key", message(magic, b"v", None), some, 2)
        yield Poison(f"{old} timestamp -5", message(magic, b"v", timestamp=-5), some, 2)
        yield Poison(f"{old} timestamp 0", message(magic, b"v", timestamp=0), some, 2)
        yield Poison(f"{old} LogAppendTime", message(magic, b"v", attributes=8), some, 2)
        yield Poison(f"{old} mixed formats", good + message(1 - magic, b"v"), some, 2)
        yield Poison(f"{old} codec 7", message(magic, b"v", attributes=7), some, 2)
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
            name = f"{old} {codec.name.lower()}"
            data = compress(codec, inner, magic=magic)
            wrapper = message(magic, data, None, codec, offset=2)
            yield Poison(f"{name} wrapper", wrapper, some, 2)
            yield Poison(f"{name} garbage", message(magic, b"\xff" * 40, None, codec), some, 2)
        wrap = [compress(Codec.GZIP, data, magic=magic) for data in _inner_sets(magic, inner)]
        names = ("empty", "crc", "compressed", "format", "cut", "key", "junk", "offsets 0")
        for name, data in zip(names, wrap, strict=True):
            yield Poison(f"{old} inner {name}", message(magic, data, None, GZIP, offset=2), some, 2)
        yield Poison(f"{old} null wrapper", message(magic, None, None, GZIP), some, 2)
        two = message(magic, wrap[3], None, GZIP) * 2
        yield Poison(f"{old} two wrappers", two, some, 2)
        yield Poison(
            f"{old} message and wrapper", good + message(magic, wrap[3], None, GZIP), some, 2
        )


def _inner_sets(magic: int, good: bytes) -> Iterator[bytes]:
    yield b""
    yield good[:12] + b"\0\0\0\0" + good[16:]
    yield message(magic, compress(Codec.GZIP, good, magic=magic), None, GZIP)
    yield message(1 - magic, b"v") * 3
    yield good[:-3]
    yield message(magic, b"v", None)
    yield good + b"junk"
    yield message(magic, b"v") * 3


# --- what a broker answers ----------------------------------------------------------------------


def answers_of(address: str, prefix: str) -> dict[str, str]:
    """The response to each case, by topic and name."""
    with WireClient(address) as wire:
        create_topics(wire, {prefix + name: configs for name, configs in TOPICS.items()})
        return {
            f"{topic}: {case.name}": shown(
                produce(wire, prefix + topic, case.records, case.version), prefix
            )
            for case in cases()
            for topic in case.topics
        }


def create_topics(wire: WireClient, topics: Mapping[str, Mapping[str, str]]) -> None:
    """Create topics with these configs, and wait until their partitions have a leader."""
    wanted = [
        CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name, configs in topics.items()
    ]
    made = wire.ask(CreateTopicsRequest(topics=wanted, timeout_ms=30_000), 7).topics
    assert all(topic.error_code == 0 for topic in made), made
    for name in topics:
        while produce(wire, name, batch(records(1), 1)).error_code in _RETRIED:
            time.sleep(0.1)


def produce(
    wire: WireClient, topic: str, data: bytes, version: int = 9, partition: int = 0
) -> PartitionProduceResponse:
    """The partition's part of the response."""
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=5_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=partition, records=data)]
            )
        ],
    )
    wire.send(request_frame(request, version))
    frame = wire.receive()
    assert frame is not None, f"the broker closed the connection topic={topic}"
    response: Any = read_response(frame, 0, version)
    part: PartitionProduceResponse = response.responses[0].partition_responses[0]
    return part


def shown(answer: PartitionProduceResponse, prefix: str) -> str:
    """The response as one line, without times, and without offsets if the batch was appended."""
    code = ErrorCode.name_of(answer.error_code)
    if answer.error_code == ErrorCode.NONE:
        return code
    errors = [
        (error.batch_index, error.batch_index_error_message) for error in answer.record_errors
    ]
    text = (
        f"{code} base={answer.base_offset} time={answer.log_append_time_ms} "
        f"start={answer.log_start_offset} {errors} {answer.error_message}"
    )
    text = re.sub(r"type in message .*?\)\. Producer", "type. Producer", text)
    return _NUMBERS.sub("N", text.replace(prefix, ""))
