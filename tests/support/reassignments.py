"""What tests of reassignments do on any cluster of three brokers, ours or Apache's."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from confluent_kafka import Producer

from tests.support.kctl import KctlResult, run_kctl

Run = Callable[..., KctlResult]

SETTINGS = {"auto.leader.rebalance.enable": "false", "broker.rack": "r"}
"""Broker settings: no automatic leader elections, and one rack for all."""


class AnyCluster(Protocol):
    """What the tests use of a cluster, of either kind."""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of its brokers."""
        ...

    def log_dir(self, broker_id: int) -> Path:
        """Where a broker keeps its partitions."""
        ...


@contextmanager
def kctl_on(cluster: AnyCluster) -> Iterator[Run]:
    """kctl on the cluster, which is empty afterwards."""
    env = {"KCTL_BOOTSTRAP_SERVERS": cluster.bootstrap_servers}
    yield lambda *args: run_kctl(*args, env=env)
    run_kctl("reassign", "cancel", "--all", "--yes", env=env)
    run_kctl("throttle", "clear", "--yes", env=env)
    run_kctl("topics", "delete", ".*", "--regex", "--yes", env=env)


def make(run: Run, name: str, assignment: str) -> None:
    """A topic with its replicas on these brokers."""
    result = run("topics", "create", name, "--replica-assignment", assignment)
    assert result.exit_code == 0, result.stderr


def fill(cluster: AnyCluster, topic: str, partitions: int, megabytes: int = 1) -> None:
    """Write `megabytes` to every partition."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(megabytes * 16):
        for partition in range(partitions):
            producer.produce(topic, bytes([number % 256]) * 65536, partition=partition)
        producer.poll(0)
    assert producer.flush(60) == 0


def plan_file(path: Path, replicas: Mapping[tuple[str, int], list[int]]) -> str:
    """Write a plan in Kafka's JSON; returns its path."""
    entries = [
        {"topic": topic, "partition": partition, "replicas": some}
        for (topic, partition), some in replicas.items()
    ]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


def replicas_of(run: Run, topic: str) -> list[list[int]]:
    """The replicas of each partition, from the cluster's metadata."""
    (found,) = run("topics", "describe", topic, "-o", "json").json
    return [partition["replicas"] for partition in found["partitions"]]
