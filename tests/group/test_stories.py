"""The stories of `stories.py`, compared with the responses of Apache Kafka 3.9.1.

Those are in golden/group-stories.txt. With `-m kafka` they are compared with a live Kafka, and with
`--rewrite` recorded from it.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.group.stories import tell
from tests.support.broker import running_broker
from tests.support.real_kafka import RealKafka

SETTINGS = {
    "group_initial_rebalance_delay_ms": 0,
    "offsets_topic_replication_factor": 1,
    "transaction_state_log_replication_factor": 1,
    "transaction_state_log_min_isr": 1,
}
GOLDEN = Path(__file__).parents[1] / "golden" / "group-stories.txt"


def told_by(address: str) -> str:
    """The responses of all stories as one text."""
    stories = asyncio.run(tell(address))
    return "".join(f"# {name}\n" + "\n".join(lines) + "\n" for name, lines in stories.items())


def test_broker_answers_as_kafka(tmp_path: Path) -> None:
    with running_broker(tmp_path, **SETTINGS) as broker:
        told = told_by(broker.bootstrap_servers)
    assert told.splitlines() == GOLDEN.read_text().splitlines()


@pytest.mark.kafka
def test_kafka_still_answers_as_recorded(real_kafka: RealKafka, request: Any) -> None:
    told = told_by(real_kafka.brokers[0])
    if request.config.getoption("--rewrite"):
        GOLDEN.write_text(told)
    assert told.splitlines() == GOLDEN.read_text().splitlines()
