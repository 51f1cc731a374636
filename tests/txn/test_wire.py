"""The script tests/scenarios/wire-transactions.txt says what Apache Kafka 3.9 answers; so do we.

It is rewritten from the real Kafka only: `pytest -m kafka --rewrite tests/txn/test_wire.py`.
"""

import time
from pathlib import Path

import pytest

from tests.api.wire import Wire
from tests.support.broker import RunningBroker
from tests.support.real_kafka import RealKafka
from tests.txn.wire_script import WireScript

SCRIPT = Path(__file__).parents[1] / "scenarios" / "wire-transactions.txt"


def play(address: str) -> str:
    with Wire(address) as wire:
        script = WireScript(wire, f"wire{time.time_ns()}-")
        script.prepare()
        return script.play(SCRIPT.read_text(encoding="utf-8"))


def test_requests_are_answered_as_kafka_answers_them(shared_broker: RunningBroker) -> None:
    assert play(shared_broker.bootstrap_servers) == SCRIPT.read_text(encoding="utf-8")


@pytest.mark.kafka
@pytest.mark.timeout(180)
def test_kafka_answers_as_the_script_says(
    real_kafka: RealKafka, request: pytest.FixtureRequest
) -> None:
    played = play(real_kafka.brokers[0])
    if request.config.getoption("--rewrite"):
        SCRIPT.write_text(played, encoding="utf-8")
    assert played == SCRIPT.read_text(encoding="utf-8")
