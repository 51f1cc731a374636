"""kill -9 under load, again and again: what was acknowledged is there, once, and in order."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.workload import (
    PARTITIONS,
    Following,
    Sending,
    Transacting,
    Work,
    committed_offsets,
    create_topics,
    read_log,
)
from tests.support.broker import RunningBroker, running_broker
from tests.support.processes import free_port

SETTINGS = {
    "offsets_topic_num_partitions": 2,
    "transaction_state_log_num_partitions": 2,
    "group_initial_rebalance_delay_ms": 0,
    "log_segment_bytes": 100_000,  # so that deaths come in the middle of rolling, too
}
LIFE_S = (0.3, 1.5)


@dataclass
class Load:
    """What runs while the broker dies."""

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
        Sending(servers, "idempotent", {"enable.idempotence": True}),
        Sending(servers, "acks-one", one),
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
    """Let the load run while the broker is killed and started again; it ends killed."""
    port = free_port()
    load = None
    for life in range(deaths):
        with served(directory, port) as broker:
            load = load or start_load(broker.bootstrap_servers)
            time.sleep(random.uniform(*LIFE_S))  # the moment of death is nobody's choice
            if life == deaths - 1:
                for work in load.works:
                    work.stop()
            kill(broker)
    assert load is not None
    return load, port


def check_sent(sending: Sending, servers: str) -> list[list[bytes]]:
    """Everything promised is at its place; gives the values by partition."""
    assert sending.refused == []
    log = read_log(servers, sending.topic)
    for records in log:
        offsets = [offset for offset, _ in records]
        assert offsets == list(range(len(records)))
    found = {(index, at): value for index, records in enumerate(log) for at, value in records}
    broken = {
        value: place for value, place in sending.promised.items() if found.get(place) != value
    }
    assert broken == {}
    return [[value for _, value in records] for records in log]


def check_idempotent(sending: Sending, servers: str) -> None:
    values = check_sent(sending, servers)
    for index, seen in enumerate(values):
        assert seen == [b"%d" % n for n in range(index, sending.num_sent, PARTITIONS)]


def check_acks_one(sending: Sending, servers: str) -> None:
    """What was sent twice may be there twice, never in another order."""
    for index, seen in enumerate(check_sent(sending, servers)):
        firsts = list(dict.fromkeys(seen))
        assert firsts == [b"%d" % n for n in range(index, sending.num_sent, PARTITIONS)]


def check_transactions(transacting: Transacting, servers: str) -> None:
    log = read_log(servers, transacting.topic, "read_committed")
    seen = [[int(value) for _, value in records] for records in log]
    assert seen[0] == seen[1] == seen[2], "a transaction is there in part"
    assert seen[0] == sorted(set(seen[0])), "a transaction is there twice, or out of order"
    assert transacting.committed <= set(seen[0]) <= transacting.committed | transacting.unknown
    assert transacting.committed
    assert transacting.aborted


def check_following(following: Following, servers: str) -> None:
    committed = committed_offsets(servers, following.topic, following.topic)
    assert following.changed == []
    for partition, offset in following.committed.items():
        assert committed[partition] >= offset
        assert {(partition, at) for at in range(offset)} <= following.read.keys()
    assert following.committed


def check(load: Load, servers: str) -> None:
    check_idempotent(load.idempotent, servers)
    check_acks_one(load.acks_one, servers)
    check_transactions(load.transacting, servers)
    check_following(load.following, servers)


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
