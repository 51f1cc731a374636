"""Reassignments (KIP-455): phases, cancelling, replacing, failover, the znode."""

from pathlib import Path

import pytest

from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.admin import ReassignPartitionsZnode
from broker.metadata.znodes.topics import ReplicaAssignment
from broker.model import TopicPartition
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    RequestPartitionData,
    RequestTopicData,
)
from tests.controller.simulation import Simulation, simulation
from tests.controller.test_kafka_controller import create

ORDERS = TopicPartition("orders", 0)


async def in_sync(world: Simulation, name: TopicPartition, isr: list[int]) -> int:
    """Let the partition's leader request this ISR; returns the error code."""
    active = world.controller._active
    assert active is not None
    known = active.services.context.leaderships[name]
    partition = RequestPartitionData(
        partition_index=name.partition,
        leader_epoch=known.leader_epoch,
        partition_epoch=known.partition_epoch,
        new_isr=isr,
    )
    topic_id = active.services.context.topic_ids[name.topic]
    topic = RequestTopicData(topic_id=topic_id, partitions=[partition])
    request = AlterPartitionRequest(
        broker_id=known.leader, broker_epoch=world.epoch_of(known.leader), topics=[topic]
    )
    response = await world.controller.alter_partition(request)
    await world.settle()
    return response.error_code or response.topics[0].partitions[0].error_code


async def test_target_replicas_follow_come_in_sync_and_take_over(tmp_path: Path) -> None:
    async with simulation(tmp_path, brokers=4) as world:
        await create(world, "orders", {0: [1, 2]})
        await world.controller.reassign(ORDERS, [3, 4])
        await world.settle()
        # Phase A: original and target replicas, the target's first; the new ones follow.
        moving = ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))
        assert (await world.topic("orders")).assignment[0] == moving
        assert await world.controller.reassignments() == {ORDERS: moving}
        assert world.brokers[3].states[ORDERS].is_new
        assert world.brokers[1].states[ORDERS].adding_replicas == [3, 4]
        assert (await world.state("orders")).leader == 1
        # One of the two is in the ISR: not complete yet.
        assert await in_sync(world, ORDERS, [1, 2, 3]) == 0
        assert (await world.topic("orders")).assignment[0] == moving
        # Phase B: one of the target replicas leads, the original ones are deleted.
        assert await in_sync(world, ORDERS, [1, 2, 3, 4]) == 0
        assert (await world.topic("orders")).assignment[0] == ReplicaAssignment((3, 4))
        state = await world.state("orders")
        assert (state.leader, set(state.isr)) == (3, {3, 4})
        assert await world.controller.reassignments() == {}
        for broker_id in (1, 2):
            assert world.brokers[broker_id].deleted == {ORDERS}
        for broker in world.brokers.values():
            assert broker.metadata[ORDERS].replicas == [3, 4]


async def test_leader_in_the_target_keeps_leading(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2]})
        await world.controller.reassign(ORDERS, [3, 1])
        await in_sync(world, ORDERS, [1, 2, 3])
        state = await world.state("orders")
        assert (state.leader, set(state.isr)) == (1, {1, 3})
        assert world.brokers[2].deleted == {ORDERS}
        assert world.brokers[1].states[ORDERS].replicas == [3, 1]


async def test_cancelled_reassignment_is_reverted_and_added_replicas_deleted(
    tmp_path: Path,
) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2]})
        await world.controller.reassign(ORDERS, [3])
        await world.controller.reassign(ORDERS, None)
        await world.settle()
        assert (await world.topic("orders")).assignment[0] == ReplicaAssignment((1, 2))
        assert world.brokers[3].deleted == {ORDERS}
        assert await world.controller.reassignments() == {}
        with pytest.raises(ApiError) as refused:
            await world.controller.reassign(ORDERS, None)
        assert refused.value.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_second_reassignment_replaces_the_first(tmp_path: Path) -> None:
    async with simulation(tmp_path, brokers=4) as world:
        await create(world, "orders", {0: [1, 2]})
        await world.controller.reassign(ORDERS, [3, 2])
        await world.controller.reassign(ORDERS, [4, 2])
        await world.settle()
        assert world.brokers[3].deleted == {ORDERS}
        assert (await world.topic("orders")).assignment[0] == ReplicaAssignment(
            (4, 2, 1), (4,), (1,)
        )
        await in_sync(world, ORDERS, [1, 2, 4])
        assert (await world.topic("orders")).assignment[0] == ReplicaAssignment((4, 2))


async def test_several_reassignments_run_at_once(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1], 1: [1], 2: [2]})
        names = [TopicPartition("orders", index) for index in range(3)]
        for name in names:
            await world.controller.reassign(name, [3])
        assert list(await world.controller.reassignments()) == names
        for name in reversed(names):
            await in_sync(world, name, [world_leader(name), 3])
        assert await world.controller.reassignments() == {}
        found = (await world.topic("orders")).assignment
        assert found == dict.fromkeys(range(3), ReplicaAssignment((3,)))


def world_leader(name: TopicPartition) -> int:
    return 2 if name.partition == 2 else 1


async def test_next_controller_continues_a_reassignment(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2]})
        await world.controller.reassign(ORDERS, [2, 3])
        await world.controller.stop()
        world.start_controller()
        await world.controller.start()
        await world.settle()
        assert list(await world.controller.reassignments()) == [ORDERS]
        await in_sync(world, ORDERS, [1, 2, 3])
        assert (await world.topic("orders")).assignment[0] == ReplicaAssignment((2, 3))
        assert (await world.state("orders")).leader == 2


async def test_reassignment_continues_when_a_target_broker_returns(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2]})
        await world.controller.reassign(ORDERS, [1, 3])
        await world.kill(3)
        await world.settle()
        back = await world.add_broker(3)
        await world.settle()
        assert ORDERS in back.states
        await in_sync(world, ORDERS, [1, 2, 3])
        assert (await world.topic("orders")).assignment[0] == ReplicaAssignment((1, 3))


async def test_same_replicas_in_another_order_change_the_preferred_leader(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2]})
        await world.controller.reassign(ORDERS, [2, 1])
        await world.settle()
        assert (await world.topic("orders")).assignment[0] == ReplicaAssignment((2, 1))
        assert (await world.state("orders")).leader == 1
        assert await world.controller.reassignments() == {}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ([], "Empty replica list"),
        ([1, 1], "Duplicate replica ids"),
        ([1, -2], "Invalid broker id"),
        ([1, 9], "brokers that are not alive"),
    ],
)
async def test_wrong_target_changes_nothing(tmp_path: Path, target: list[int], words: str) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2]})
        before = await world.state("orders")
        with pytest.raises(ApiError, match=words) as refused:
            await world.controller.reassign(ORDERS, target)
        assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await world.state("orders") == before
        assert (await world.topic("orders")).assignment[0] == ReplicaAssignment((1, 2))


async def test_partition_that_does_not_exist_cannot_be_reassigned(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        with pytest.raises(ApiError) as refused:
            await world.controller.reassign(TopicPartition("nothing", 0), [1])
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_reassign_znode_is_processed_and_deleted_when_complete(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1], 1: [2]})
        second = TopicPartition("orders", 1)
        requested = {ORDERS: (3,), second: (3, 2), TopicPartition("nothing", 0): (1,)}
        path = ReassignPartitionsZnode.PATH
        await world.store.create(path, ReassignPartitionsZnode.encode(requested))
        await world.settle()
        # Requests that cannot be processed are removed.
        left = ReassignPartitionsZnode.decode((await world.store.get(path)).data)
        assert left == {ORDERS: (3,), second: (3, 2)}
        await in_sync(world, ORDERS, [1, 3])
        left = ReassignPartitionsZnode.decode((await world.store.get(path)).data)
        assert left == {second: (3, 2)}
        await in_sync(world, second, [2, 3])
        assert await world.store.exists(path) is None
        found = (await world.topic("orders")).assignment
        assert found == {0: ReplicaAssignment((3,)), 1: ReplicaAssignment((3, 2))}


async def test_request_overrides_the_reassign_znode(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1]})
        path = ReassignPartitionsZnode.PATH
        await world.store.create(path, ReassignPartitionsZnode.encode({ORDERS: (3,)}))
        await world.settle()
        await world.controller.reassign(ORDERS, [2])
        assert await world.store.exists(path) is None
        assert (await world.controller.reassignments())[ORDERS].replicas == (2, 1)


async def test_topic_being_reassigned_gets_no_new_partitions(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1]})
        await world.controller.reassign(ORDERS, [2])
        with pytest.raises(ApiError) as refused:
            await world.controller.create_partitions("orders", 2, None)
        assert refused.value.code == ErrorCode.REASSIGNMENT_IN_PROGRESS


async def test_partition_that_never_had_a_leader_is_reassigned_at_once(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        topic = NewTopic("orders", manual_assignment={0: [8]})
        assert not (await world.controller.create_topic(topic)).is_led
        await world.controller.reassign(ORDERS, [2])
        await world.settle()
        assert (await world.state("orders")).leader == 2
        assert ORDERS in world.brokers[2].states
