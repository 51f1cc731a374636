"""Fixtures for test suites of other projects: a real Kafka broker without Docker.

pytest finds this module through the entry point `pytest11` of the installed package. Every test
that names one of these fixtures gets a real broker, started in about half a second:

    kafka_broker    one broker for the whole run
    kafka_cluster   three brokers and a ZooKeeper; needs the extra `spark`, which brings both jars
                    and Java
    kafka_topic     the name of a topic that exists for one test, on `kafka_broker`

`kafka_settings` holds settings of all brokers; a project overrides this fixture in its conftest.py.
Nothing but pytest is imported before a fixture is used: suites that have this package installed and
do not use it pay nothing.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from kctl.dev.brokers import DevBroker

_CLUSTER_SIZE = 3
_TIMEOUT_S = 30
_LISTENER = "PLAINTEXT://127.0.0.1:0"
_QUICK = {"group.initial.rebalance.delay.ms": "0"}
"""Settings that make tests faster; `kafka_settings` overrides them."""


@dataclass(frozen=True)
class KafkaBroker:
    """A broker of this test run. Its port is free when it starts, and kept when it starts again."""

    bootstrap_servers: str
    """`host:port`, for the client under test."""
    log_file: Path
    """What the broker logs, for a test that fails."""
    _process: DevBroker

    def kill(self) -> None:
        """End the broker as kill -9 does; nothing is flushed or handed over."""
        self._process.stop(by=signal.SIGKILL)

    def stop(self) -> None:
        """Stop the broker cleanly."""
        self._process.stop()

    def start(self) -> None:
        """Start the broker again, with its data, on the same port."""
        self._process.start()


@dataclass(frozen=True)
class KafkaCluster:
    """Brokers with the ids 1, 2 and 3 that share a ZooKeeper."""

    brokers: Mapping[int, KafkaBroker]
    zookeeper: str
    """The connect string of the ZooKeeper."""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of `kafka_topic`."""
    config.addinivalue_line(
        "markers",
        "kafka_topic(partitions=1, configs=None): settings of the topic in the fixture kafka_topic",
    )


@pytest.fixture(scope="session")
def kafka_settings() -> dict[str, str]:
    """Settings of the brokers, as in server.properties; override this fixture to change them."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(
    tmp_path_factory: pytest.TempPathFactory, kafka_settings: Mapping[str, str]
) -> Iterator[KafkaBroker]:
    """One broker for the whole run; its data is deleted with pytest's temporary directories."""
    from kctl.dev.brokers import dev_broker

    broker = dev_broker(tmp_path_factory.mktemp("kafka-broker"), 1)
    broker.write_settings(_QUICK | {"listeners": _LISTENER} | dict(kafka_settings))
    try:
        yield _keep_port(broker, broker.start())
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def kafka_cluster(
    tmp_path_factory: pytest.TempPathFactory, kafka_settings: Mapping[str, str]
) -> Iterator[KafkaCluster]:
    """Three brokers and a ZooKeeper for the whole run."""
    from kctl.dev.brokers import dev_broker, start_all, stop_all
    from kctl.dev.cluster import cluster_settings, wait_until_ready
    from kctl.dev.zookeeper import dev_zookeeper

    state = tmp_path_factory.mktemp("kafka-cluster")
    zookeeper = dev_zookeeper(state)
    brokers = [dev_broker(state, broker_id) for broker_id in range(1, _CLUSTER_SIZE + 1)]
    try:
        zookeeper.ensure_running()
        settings = cluster_settings(zookeeper.address, _CLUSTER_SIZE)
        for broker in brokers:
            own = _QUICK | settings | {"listeners": _LISTENER}
            broker.write_settings(own | dict(kafka_settings))
        addresses = start_all(brokers)
        wait_until_ready(addresses)
        running = zip(brokers, addresses, strict=True)
        yield KafkaCluster(
            {broker.broker_id: _keep_port(broker, address) for broker, address in running},
            zookeeper.address,
        )
    finally:
        stop_all(brokers)
        zookeeper.stop()


def _keep_port(broker: DevBroker, address: str) -> KafkaBroker:
    """Fix the port that the broker found, so that clients find it again after a restart."""
    text = broker.properties_file.read_text()
    broker.properties_file.write_text(text.replace(_LISTENER, f"PLAINTEXT://{address}"))
    return KafkaBroker(address, broker.log_file, broker)


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker: KafkaBroker) -> Iterator[str]:
    """The name of a topic of this test's own on `kafka_broker`; deleted afterwards.

    It has one partition, or what `@pytest.mark.kafka_topic(partitions=3, configs={…})` says.
    """
    marker = request.node.get_closest_marker("kafka_topic")
    options = marker.kwargs if marker is not None else {}
    name = f"{re.sub(r'[^a-zA-Z0-9._-]', '-', request.node.name)[:200]}-{uuid4().hex[:8]}"
    asyncio.run(_create(kafka_broker.bootstrap_servers, name, **options))
    yield name
    asyncio.run(_delete(kafka_broker.bootstrap_servers, name))


async def _create(
    address: str, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    from broker.net.client import Client
    from kctl.admin.topics import create_topics
    from kctl.model.topics import NewTopic

    topic = NewTopic(name, partitions, 1, configs=dict(configs or {}))
    async with Client(address) as client:
        (outcome,) = await create_topics(client, [topic], timeout_s=_TIMEOUT_S)
    if outcome.error:
        pytest.fail(f"cannot create the topic {name}: {outcome.reason}")


async def _delete(address: str, name: str) -> None:
    """Delete the topic; a test may have done so itself, or have stopped the broker for good."""
    from broker.net.client import Client, NoBrokerAvailable
    from kctl.admin.topics import delete_topics

    try:
        async with Client(address) as client:
            await delete_topics(client, [name], timeout_s=_TIMEOUT_S)
    except (NoBrokerAvailable, OSError):
        return
