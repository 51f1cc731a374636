"""Malformed batches with a correct crc get Kafka's response, and consumers can continue."""

import json
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from crc32c import crc32c

from broker.errors import ErrorCode
from tests.log.poison import (
    GOLDEN,
    ZSTD,
    answers_of,
    batch,
    cases,
    create_topics,
    produce,
    record,
    records,
    zstd,
)
from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import RealKafka
from tests.support.wire import WireClient


def test_every_malformed_batch_gets_the_answer_that_kafka_gives(
    shared_broker: RunningBroker,
) -> None:
    expected: dict[str, str] = json.loads(GOLDEN.read_text())
    answers = answers_of(shared_broker.bootstrap_servers, "poison-")
    assert len(expected) > 700
    assert {name for name in expected if answers[name] != expected[name]} == set()
    assert answers == expected
    assert "Traceback" not in shared_broker.output()


@pytest.mark.kafka
def test_kafka_gives_the_answers_that_we_compare_with(real_kafka: RealKafka) -> None:
    answers = answers_of(real_kafka.bootstrap_servers, f"poison-{time.time_ns()}-")
    assert answers == json.loads(GOLDEN.read_text())


def test_consumers_read_on_after_refused_batches(shared_broker: RunningBroker) -> None:
    servers = shared_broker.bootstrap_servers
    expected = json.loads(GOLDEN.read_text())
    sent = []
    with WireClient(servers) as wire:
        create_topics(wire, {"read-on": {}})
        for number, case in enumerate(cases()):
            if "plain" not in case.topics or expected[f"plain: {case.name}"] == "NONE":
                continue
            assert produce(wire, "read-on", case.records, case.version).error_code
            sent.append(b"%d" % number)
            good = batch(record(value=sent[-1]), 1)
            assert produce(wire, "read-on", good).error_code == ErrorCode.NONE
    assert _values(servers, "read-on", 1 + len(sent)) == [b"v", *sent]


def _values(servers: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "poison"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    deadline = time.monotonic() + 20
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None:
            assert message.error() is None
            values.append(message.value())
    consumer.close()
    return values


def mutated(chance: random.Random) -> Iterator[bytes]:
    """Endless: batches with a correct crc whose records have bytes changed, cut or added."""
    headers = b"\4\2h\2x\2g\1"
    while True:
        number = chance.randrange(1, 5)
        good = b"".join(
            record(
                index,
                chance.choice([None, b"", b"key"]),
                chance.choice([None, b"value" * 20]),
                chance.choice([0, 1, -1, 70, 9_000]),
                chance.choice([b"\0", headers]),
            )
            for index in range(number)
        )
        count = chance.choice([number, number, number, chance.randrange(1, 5)])
        changed = bytearray(good)
        for _ in range(chance.randrange(3)):
            at = chance.randrange(len(changed))
            kind = chance.randrange(4)
            if kind == 0:
                changed[at] = chance.randrange(256)
            elif kind == 1:
                changed[at] ^= 1 << chance.randrange(8)
            elif kind == 2:
                del changed[at]
            else:
                changed.insert(at, chance.choice([0, 1, 0x7F, 0x80, 0xFF]))
            changed = changed or bytearray(1)
        data = bytes(changed)
        if chance.randrange(2):
            yield batch(data, count)
        else:
            yield batch(zstd(data), count, ZSTD)


@pytest.mark.kafka
@pytest.mark.slow
def test_generated_and_mutated_batches_get_the_code_that_kafka_gives(
    real_kafka: RealKafka, tmp_path: Path
) -> None:
    with running_broker(tmp_path) as broker, WireClient(broker.bootstrap_servers) as ours:
        theirs = WireClient(real_kafka.bootstrap_servers)
        topic = f"mutated-{time.time_ns()}"
        for wire in (ours, theirs):
            create_topics(wire, {topic: {}})
        batches = mutated(random.Random(3))
        verdicts = set()
        for _ in range(3_000):
            data = next(batches)
            found = [produce(wire, topic, data).error_code for wire in (ours, theirs)]
            assert found[0] == found[1], data.hex()
            verdicts.add(found[0])
        assert verdicts == {
            ErrorCode.NONE,
            ErrorCode.INVALID_RECORD,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        }
        theirs.socket.close()


def test_the_max_timestamp_of_the_header_becomes_that_of_the_records(
    shared_broker: RunningBroker,
) -> None:
    now = int(time.time() * 1000)
    liar = batch(records(2), 2, 0, now, 2**63 - 1)
    with WireClient(shared_broker.bootstrap_servers) as wire:
        create_topics(wire, {"liar": {}})
        offset = produce(wire, "liar", liar).base_offset
    stored = (shared_broker.log_dir / "liar-0" / f"{0:020}.log").read_bytes()[-len(liar) :]
    assert struct.unpack_from(">q", stored) == (offset,)
    assert struct.unpack_from(">q", stored, 35) == (now,)
    assert stored[61:] == liar[61:]
    assert struct.unpack_from(">I", stored, 17) == (crc32c(stored[21:]),)
