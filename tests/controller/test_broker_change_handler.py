"""Broker startup, failure, bounce, new endpoints, failed log directories, shutdown."""

from pathlib import Path

import pytest

from broker.config.dynamic import EntityType
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.notifications import LogDirEventZnode
from broker.model import TopicPartition
from broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from broker.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.controller.simulation import simulation
from tests.controller.test_kafka_controller import create

ORDERS = TopicPartition("orders", 0)


async def test_next_replica_in_the_isr_leads_when_the_leader_fails(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2, 1]})
        await world.kill(3)
        await world.settle()
        state = await world.state("orders")
        assert (state.leader, state.leader_epoch, state.isr) == (2, 1, (2, 1))
        assert world.brokers[1].states[ORDERS].leader == 2
        assert world.brokers[1].metadata[ORDERS].offline_replicas == [3]
        assert world.brokers[1].live == {1, 2}


async def test_failed_follower_leaves_the_isr_and_the_leader_is_sent_it(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2, 3]})
        await world.kill(3)
        await world.settle()
        state = await world.state("orders")
        assert (state.leader, state.leader_epoch, state.isr) == (1, 1, (1, 2))
        assert world.brokers[1].states[ORDERS].isr == [1, 2]


async def test_with_all_replicas_down_the_last_isr_member_is_waited_for(tmp_path: Path) -> None:
    """The first of the seeds' two policies: wait for the ISR."""
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [2, 3]})
        for broker_id in (3, 2):
            await world.kill(broker_id)
            await world.settle()
        state = await world.state("orders")
        assert (state.leader, state.isr) == (-1, (2,))
        await world.add_broker(3)
        await world.settle()
        assert (await world.state("orders")).leader == -1
        await world.add_broker(2)
        await world.settle()
        state = await world.state("orders")
        assert (state.leader, state.isr) == (2, (2,))


async def test_with_all_replicas_down_the_first_to_return_leads_if_unclean_is_allowed(
    tmp_path: Path,
) -> None:
    """The second policy: the first live replica, and records may be lost."""
    async with simulation(tmp_path, unclean_leader_election_enable="true") as world:
        await create(world, "orders", {0: [2, 3]})
        for broker_id in (3, 2):
            await world.kill(broker_id)
            await world.settle()
        await world.add_broker(3)
        await world.settle()
        state = await world.state("orders")
        assert (state.leader, state.isr, state.is_recovering) == (3, (3,), True)
        assert world.brokers[3].states[ORDERS].leader_recovery_state == 1


async def test_enabling_unclean_elections_elects_offline_partitions(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [2, 3]})
        for broker_id in (3, 2):
            await world.kill(broker_id)
            await world.settle()
        await world.add_broker(3)
        await world.settle()
        own = {"unclean.leader.election.enable": "true"}
        world.configs.apply(EntityType.TOPIC, "orders", own)
        await world.settle()
        assert (await world.state("orders")).leader == 3


async def test_returning_broker_is_sent_all_metadata_and_its_replicas(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 3], 1: [1, 2]})
        await world.kill(3)
        await world.settle()
        back = await world.add_broker(3)
        await world.settle()
        assert set(back.states) == {ORDERS}
        assert set(back.metadata) == {ORDERS, TopicPartition("orders", 1)}
        assert back.live == world.brokers[1].live == {1, 2, 3}
        assert not back.states[ORDERS].is_new


async def test_bounced_broker_leads_nothing_that_it_led_before(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2]})
        await create(world, "alone", {0: [3]})
        old_epoch = world.epoch_of(3)
        await world.bounce(3)
        await world.settle()
        assert world.epoch_of(3) > old_epoch
        assert {r.broker_epoch for r in world.brokers[3].requests} == {world.epoch_of(3)}
        state = await world.state("orders", 0)
        assert (state.leader, state.isr) == (2, (2,))
        alone = await world.state("alone")
        assert (alone.leader, alone.leader_epoch, alone.isr) == (3, 2, (3,))


async def test_new_endpoints_of_a_broker_are_sent_to_the_others(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await world.settle()
        await world.register(3, port=7777)
        await world.settle()
        told = world.brokers[2].requests[-1]
        assert isinstance(told, UpdateMetadataRequest)
        ports = {b.id: b.endpoints[0].port for b in told.live_brokers}
        assert ports[3] == 7777


async def test_replica_in_a_failed_log_directory_loses_leadership_and_leaves_the_isr(
    tmp_path: Path,
) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2], 1: [3, 2]})
        world.brokers[3].failed_dirs = {ORDERS}
        await world.store.create(LogDirEventZnode.PREFIX, LogDirEventZnode.encode(3), sequence=True)
        await world.settle()
        state = await world.state("orders", 0)
        assert (state.leader, state.isr) == (2, (2,))
        assert (await world.state("orders", 1)).leader == 3
        assert world.brokers[1].metadata[ORDERS].offline_replicas == [3]
        assert await world.store.children(LogDirEventZnode.PARENT) == []


async def test_controlled_shutdown_moves_leadership_and_stops_followers(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2], 1: [1, 3]})
        await create(world, "alone", {0: [3]})
        request = ControlledShutdownRequest(broker_id=3, broker_epoch=world.epoch_of(3))
        response = await world.controller.controlled_shutdown(request)
        await world.settle()
        assert response.remaining_partitions == []
        moved, followed = await world.state("orders", 0), await world.state("orders", 1)
        assert (moved.leader, moved.isr) == (2, (2,))
        assert (followed.leader, followed.isr) == (1, (1,))
        # The only replica leads until the broker is gone.
        assert (await world.state("alone")).leader == 3
        assert set(world.brokers[3].states) == {ORDERS, TopicPartition("alone", 0)}


async def test_partition_without_another_replica_in_sync_remains(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2]})
        await world.kill(2)
        await world.settle()
        request = ControlledShutdownRequest(broker_id=3, broker_epoch=world.epoch_of(3))
        response = await world.controller.controlled_shutdown(request)
        (remaining,) = response.remaining_partitions
        assert (remaining.topic_name, remaining.partition_index) == ("orders", 0)


@pytest.mark.parametrize(
    ("broker_id", "older_by", "code"),
    [(9, 0, ErrorCode.BROKER_NOT_AVAILABLE), (3, 1, ErrorCode.STALE_BROKER_EPOCH)],
)
async def test_shutdown_of_a_broker_that_is_not_registered_is_rejected(
    tmp_path: Path, broker_id: int, older_by: int, code: ErrorCode
) -> None:
    async with simulation(tmp_path) as world:
        epoch = world.epoch_of(3) - older_by
        request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=epoch)
        with pytest.raises(ApiError) as refused:
            await world.controller.controlled_shutdown(request)
        assert refused.value.code == code


async def test_slow_broker_does_not_delay_the_others(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await world.settle()
        world.brokers[3].may_answer.clear()
        await world.controller.create_topic(NewTopic("wide", 1, 3))
        await world.until(lambda: TopicPartition("wide", 0) in world.brokers[2].states)
        assert not world.brokers[3].states
        world.brokers[3].may_answer.set()
        await world.until(lambda: TopicPartition("wide", 0) in world.brokers[3].states)
