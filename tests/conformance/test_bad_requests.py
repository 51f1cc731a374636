"""Invalid Produce and Fetch requests: Kafka's errors, other clients undisturbed, no leaks."""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.conformance.bad_requests import GOLDEN, Bad, answers_of, produce_cases
from tests.conformance.test_wire import resident_kb
from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import RealKafka
from tests.support.wire import WireClient, request_frame

TRIPPED = "UNKNOWN_SERVER_ERROR"
"""Kafka's code for unexpected exceptions.

Ours returns it in the same cases of Produce (a client must not retry these batches), and never in
others; for malformed Fetch requests its errors are more specific.
"""


def test_bad_requests_get_the_answers_that_kafka_gives(shared_broker: RunningBroker) -> None:
    expected: dict[str, str] = json.loads(GOLDEN.read_text())
    answers = answers_of(shared_broker.bootstrap_servers, "bad-")
    same = {name for name, answer in expected.items() if TRIPPED not in answer}
    same |= {name for name, answer in answers.items() if TRIPPED in answer}
    assert len(same) > 250
    assert {name: answers[name] for name in same} == {name: expected[name] for name in same}
    assert "Traceback" not in shared_broker.output()


@pytest.mark.kafka
def test_kafka_gives_the_answers_that_we_compare_with(real_kafka: RealKafka) -> None:
    answers = answers_of(real_kafka.bootstrap_servers, f"bad-{time.time_ns()}-")
    assert answers == json.loads(GOLDEN.read_text())


@contextmanager
def honest_work(servers: str) -> Iterator[list[float]]:
    """A client that produces and fetches meanwhile; returns the duration of every round."""
    is_over, rounds = Event(), list[float]()
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 0})
    producer.produce("honest", b"first", partition=0)
    assert producer.flush(10) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "honest"})
    consumer.assign([TopicPartition("honest", 0, 0)])

    def work() -> None:
        expected = b"first"
        while not is_over.is_set():
            begun = time.monotonic()
            while (message := consumer.poll(5)) is None or message.error():
                pass
            assert message.value() == expected
            expected = b"%d" % len(rounds)
            producer.produce("honest", expected, partition=0)
            producer.flush(10)
            rounds.append(time.monotonic() - begun)
        consumer.close()

    worker = Thread(target=work)
    worker.start()
    try:
        yield rounds
    finally:
        is_over.set()
        worker.join(20)


def hostile_frames(chance: random.Random) -> Iterator[bytes]:
    """Endless: damaged produce requests, valid ones truncated or with changed bytes, noise."""
    cases = list(produce_cases())
    while True:
        frame = _frame(chance.choice(cases))
        kind = chance.randrange(4)
        if kind == 0:
            yield frame
        elif kind == 1:
            yield frame[: chance.randrange(len(frame))]
        elif kind == 2:
            changed = bytearray(frame)
            for _ in range(chance.randrange(1, 8)):
                changed[chance.randrange(2, len(changed))] = chance.randrange(256)
            yield bytes(changed)
        else:
            yield chance.randbytes(chance.randrange(200))


def _frame(bad: Bad) -> bytes:
    data = PartitionProduceData(index=bad.partition, records=bad.records)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=100,
        topic_data=[TopicProduceData(name="hostile", partition_data=[data])],
    )
    return request_frame(request, bad.version)


def send_hostile(servers: str, frames: Iterator[bytes], count: int) -> None:
    """Use one connection until the broker closes it, then the next."""
    wire = WireClient(servers)
    for _ in range(count):
        wire.send(next(frames))
        wire.socket.settimeout(0.3)
        try:
            is_closed = wire.receive() is None
        except TimeoutError:  # no response: the broker waits for more bytes, or must not respond
            is_closed = True
        if is_closed:
            wire.socket.close()
            wire = WireClient(servers)
    wire.socket.close()


def levels_off(work: Callable[[], None], broker: RunningBroker) -> bool:
    """Whether memory stops growing while `work` is repeated."""
    before = resident_kb(broker)
    for _ in range(8):
        work()
        after = resident_kb(broker)
        if after - before < 400:
            return True
        before = after
    return False


def test_thousands_of_bad_requests_cost_no_memory_and_disturb_no_client(tmp_path: Path) -> None:
    with running_broker(tmp_path, num_partitions=1) as broker:
        servers = broker.bootstrap_servers
        frames = hostile_frames(random.Random(5))
        with honest_work(servers) as rounds:
            assert levels_off(lambda: send_hostile(servers, frames, 3_500), broker)
        assert len(rounds) > 20
        assert max(rounds) < 2
        assert "Traceback" not in broker.output()
