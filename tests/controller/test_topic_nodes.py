"""Topics created, extended and deleted by writing to the store, as Kafka's older tools do."""

from pathlib import Path

import pytest

from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.admin import DELETE_TOPICS_PATH, delete_topic_path
from broker.metadata.znodes.configs import ConfigEntityZnode
from broker.metadata.znodes.topics import ReplicaAssignment, TopicZnode
from broker.model import TopicPartition
from tests.controller.simulation import Simulation, simulation
from tests.controller.test_kafka_controller import create
from tests.controller.test_reassignment_manager import in_sync


async def write(world: Simulation, name: str, *replicas: tuple[int, ...]) -> None:
    """As a tool from before topic ids (KIP-516) writes it."""
    assigned = {i: ReplicaAssignment(ids) for i, ids in enumerate(replicas)}
    data = TopicZnode(name, None, assigned).encode()
    if await world.store.exists(TopicZnode.path(name)):
        await world.store.set(TopicZnode.path(name), data)
    else:
        await world.store.create(TopicZnode.path(name), data)
    await world.settle()


async def test_topic_written_into_the_store_is_led_and_gets_an_id(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await write(world, "orders", (2, 3), (3, 1))
        assert (await world.state("orders", 1)).leader == 3
        topic_id = (await world.topic("orders")).topic_id
        assert topic_id is not None
        assert world.brokers[1].metadata[TopicPartition("orders", 0)].leader == 2


async def test_partitions_written_into_the_store_are_led(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1]})
        topic_id = (await world.topic("orders")).topic_id
        grown = {0: ReplicaAssignment((1,)), 1: ReplicaAssignment((2,))}
        await world.store.set(
            TopicZnode.path("orders"), TopicZnode("orders", topic_id, grown).encode()
        )
        await world.settle()
        assert (await world.state("orders", 1)).leader == 2
        assert TopicPartition("orders", 1) in world.brokers[2].states


async def test_deletion_requested_by_znode_removes_everything(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await world.controller.create_topic(
            NewTopic("orders", 2, 3, configs={"cleanup.policy": "compact"})
        )
        await world.store.create(delete_topic_path("orders"))
        await world.settle()
        assert await world.store.exists(TopicZnode.path("orders")) is None
        assert await world.store.exists(ConfigEntityZnode.path("topics", "orders")) is None
        assert await world.store.children(DELETE_TOPICS_PATH) == []
        for broker in world.brokers.values():
            assert broker.deleted == {TopicPartition("orders", 0), TopicPartition("orders", 1)}
            assert broker.metadata == {}


async def test_request_to_delete_an_unknown_topic_is_dropped(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await world.store.create(delete_topic_path("nothing"))
        await world.settle()
        assert await world.store.children(DELETE_TOPICS_PATH) == []


async def test_requests_to_delete_are_dropped_if_deletion_is_disabled(tmp_path: Path) -> None:
    async with simulation(tmp_path, delete_topic_enable="false") as world:
        await create(world, "orders", {0: [1]})
        await world.store.create(delete_topic_path("orders"))
        await world.settle()
        assert await world.store.children(DELETE_TOPICS_PATH) == []
        assert (await world.state("orders")).leader == 1


async def test_deletion_waits_for_a_dead_broker_and_continues_when_it_returns(
    tmp_path: Path,
) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 3]})
        await world.kill(3)
        await world.settle()
        await world.controller.delete_topic("orders")
        await world.settle()
        # Clients no longer see it; the request stays until everything is deleted.
        assert world.brokers[2].metadata == {}
        assert await world.store.children(DELETE_TOPICS_PATH) == ["orders"]
        with pytest.raises(ApiError) as refused:
            await world.controller.create_topic(NewTopic("orders"))
        assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        await world.add_broker(3)
        await world.settle()
        assert world.brokers[3].deleted == {TopicPartition("orders", 0)}
        assert await world.store.children(DELETE_TOPICS_PATH) == []
        assert await world.store.exists(TopicZnode.path("orders")) is None


async def test_next_controller_continues_deletions(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 3]})
        await world.kill(3)
        await world.settle()
        await world.controller.delete_topic("orders")
        await world.controller.stop()
        await world.add_broker(3)
        world.start_controller()
        await world.controller.start()
        await world.settle()
        assert await world.store.exists(TopicZnode.path("orders")) is None


async def test_topic_being_reassigned_is_deleted_afterwards(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1]})
        name = TopicPartition("orders", 0)
        await world.controller.reassign(name, [2])
        await world.controller.delete_topic("orders")
        await world.settle()
        assert await world.store.exists(TopicZnode.path("orders")) is not None
        await in_sync(world, name, [1, 2])
        assert await world.store.exists(TopicZnode.path("orders")) is None
        assert world.brokers[2].deleted == {name}


async def test_replica_that_cannot_be_deleted_halts_the_deletion(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2]})
        world.brokers[2].failed_dirs = {TopicPartition("orders", 0)}
        await world.controller.delete_topic("orders")
        await world.settle()
        assert await world.store.children(DELETE_TOPICS_PATH) == ["orders"]


async def test_deleted_topic_can_be_created_again_at_once(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        first = await world.controller.create_topic(NewTopic("orders", 2, 3))
        await world.controller.delete_topic("orders")
        second = await world.controller.create_topic(NewTopic("orders", 1, 3))
        await world.settle()
        assert second.topic_id != first.topic_id
        assert set(world.brokers[2].states) == {TopicPartition("orders", 0)}
