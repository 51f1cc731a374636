"""Decisions of the controller are logged in Kafka's words, with key=value."""

import logging
from pathlib import Path

import pytest

from tests.controller.simulation import simulation
from tests.controller.test_kafka_controller import create


def _lines(caplog: pytest.LogCaptureFixture, logger: str, about: str) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.name == logger]
    return [line for line in found if about in line]


async def test_partition_state_changes_are_logged_on_state_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with simulation(tmp_path) as world:
            await create(world, "orders", {0: [1, 2]})
            await world.kill(1)
            await world.settle()
    assert _lines(caplog, "state.change", "orders-0") == [
        "Changed partition state partition=orders-0 from=NonExistentPartition to=NewPartition "
        "replicas=1,2 controller_epoch=1",
        "Changed partition state partition=orders-0 from=NewPartition to=OnlinePartition leader=1 "
        "leader_epoch=0 isr=1,2 partition_epoch=0 controller_epoch=1",
        "Changed partition state partition=orders-0 from=OnlinePartition to=OfflinePartition "
        "replicas=1,2 controller_epoch=1",
        "Changed partition state partition=orders-0 from=OfflinePartition to=OnlinePartition "
        "leader=2 leader_epoch=1 isr=2 partition_epoch=1 controller_epoch=1",
    ]


async def test_controller_and_broker_changes_are_logged_at_info(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with simulation(tmp_path, brokers=2) as world:
            await world.kill(2)
            await world.settle()
            await world.add_broker(2)
            await world.settle()
    controller = "broker.controller.kafka_controller"
    assert _lines(caplog, controller, "controller") == [
        "Elected as the controller broker=1 epoch=1",
        "Resigned as the controller broker=1 epoch=1",
    ]
    assert _lines(caplog, "broker.controller.broker_change_handler", "brokers=") == [
        "Broker failure brokers=[2]",
        "New broker startup brokers=[2]",
    ]


async def test_an_election_without_eligible_replica_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [2]})
        await world.kill(2)
        await world.settle()
    (line,) = set(_lines(caplog, "state.change", "Failed to elect"))
    assert line == (
        "Failed to elect leader for partition=orders-0 "
        "strategy=OfflinePartitionLeaderElectionStrategy(false) controller_epoch=1"
    )
