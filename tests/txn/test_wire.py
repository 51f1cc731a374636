"""Responses compared with those of Apache Kafka 3.9 in tests/scenarios/wire-transactions.txt.

The script is rewritten only from a real Kafka: `pytest -m kafka --rewrite tests/txn/test_wire.py`.
"""

import time
from pathlib import Path

import pytest

from tests.support.broker import RunningBroker
from tests.support.real_kafka import RealKafka
from tests.support.wire import WireClient
from tests.txn.wire_script import WireScript

SCRIPT = Path(__file__).parents[1] / "scenarios" / "wire-transactions.txt"


def play(address: str) -> str:
    with WireClient(address) as wire:
        script = WireScript(wire, f"wire{time.time_ns()}-")
        script.prepare()
        return script.play(SCRIPT.read_text(encoding="utf-8"))


def test_responses_equal_those_of_kafka(shared_broker: RunningBroker) -> None:
    assert play(shared_broker.bootstrap_servers) == SCRIPT.read_text(encoding="utf-8")


@pytest.mark.kafka
@pytest.mark.timeout(180)
def test_kafka_still_answers_as_recorded(
    real_kafka: RealKafka, request: pytest.FixtureRequest
) -> None:
    played = play(real_kafka.brokers[0])
    if request.config.getoption("--rewrite"):
        SCRIPT.write_text(played, encoding="utf-8")
    assert played == SCRIPT.read_text(encoding="utf-8")
