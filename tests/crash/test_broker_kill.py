"""kill -9 under load, repeatedly: acknowledged records exist once and in order."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.checks import (
    check_acks_one,
    check_followed,
    check_idempotent,
    check_transactions,
)
from tests.crash.workload import (
    Following,
    LibrdkafkaSending,
    Sending,
    Transacting,
    Work,
    create_topics,
)
from tests.support.broker import RunningBroker, running_broker
from tests.support.processes import free_port

SETTINGS = {
    "offsets_topic_num_partitions": 2,
    "transaction_state_log_num_partitions": 2,
    "group_initial_rebalance_delay_ms": 0,
    "log_segment_bytes": 100_000,  # so that some kills interrupt a roll
}
LIFE_S = (0.3, 1.5)


@dataclass
class Load:
    """The clients that run while the broker is killed."""

    idempotent: Sending
    acks_one: Sending
    transacting: Transacting
    following: Following

    @property
    def works(self) -> tuple[Work, ...]:
        return (self.idempotent, self.acks_one, self.transacting, self.following)


def start_load(servers: str) -> Load:
    create_topics(servers, "idempotent", "acks-one", "transactions")
    one = {"acks": 1, "max.in.flight.requests.per.connection": 1}  # a retry keeps the order
    load = Load(
        LibrdkafkaSending(servers, "idempotent", {"enable.idempotence": True}),
        LibrdkafkaSending(servers, "acks-one", one),
        Transacting(servers, "transactions"),
        Following(servers, "idempotent"),
    )
    for work in load.works:
        work.start()
    return load


def kill(broker: RunningBroker) -> None:
    broker.server.process.kill()
    broker.server.process.wait()
    assert "Traceback" not in broker.output()


@contextmanager
def served(directory: Path, port: int) -> Iterator[RunningBroker]:
    listeners = f"PLAINTEXT://127.0.0.1:{port}"
    with running_broker(directory, listeners=listeners, **SETTINGS) as broker:
        yield broker


def survive(directory: Path, deaths: int) -> tuple[Load, int]:
    """Kill and restart the broker under load; the last kill is not followed by a restart."""
    port = free_port()
    load = None
    for life in range(deaths):
        with served(directory, port) as broker:
            load = load or start_load(broker.bootstrap_servers)
            time.sleep(random.uniform(*LIFE_S))  # at a random moment
            if life == deaths - 1:
                for work in load.works:
                    work.stop()
            kill(broker)
    assert load is not None
    return load, port


def check(load: Load, servers: str) -> None:
    check_idempotent(load.idempotent, servers)
    check_acks_one(load.acks_one, servers)
    check_transactions(load.transacting, servers)
    check_followed([load.following], servers)


@pytest.mark.parametrize(
    "deaths", [3, pytest.param(10, marks=[pytest.mark.slow, pytest.mark.timeout(180)])]
)
def test_what_was_acknowledged_survives_every_death_of_the_broker(
    tmp_path: Path, deaths: int
) -> None:
    load, port = survive(tmp_path, deaths)
    with served(tmp_path, port) as broker:
        check(load, broker.bootstrap_servers)
        assert "Traceback" not in broker.output()
