"""The controller as a whole: election, fencing, resignation, requests to all brokers."""

from pathlib import Path

import pytest

from broker.controller.controller_context import Replica
from broker.controller.states import ReplicaState
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import SessionExpired
from broker.metadata.store import Create, Delete, SetData
from broker.metadata.znodes.brokers import BrokerIdZnode
from broker.metadata.znodes.controller import ControllerEpochZnode, ControllerZnode
from broker.metadata.znodes.topics import TopicZnode
from broker.model import TopicPartition
from broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from broker.protocol.messages.stop_replica import StopReplicaResponse
from broker.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.controller.simulation import Simulation, simulation


async def create(world: Simulation, name: str, assignment: dict[int, list[int]]) -> None:
    await world.controller.create_topic(NewTopic(name, manual_assignment=assignment))
    await world.settle()


async def test_elected_controller_sends_every_broker_the_live_brokers(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await world.settle()
        assert world.controller.is_active
        assert world.controller.epoch == 1
        found = ControllerZnode.decode((await world.store.get(ControllerZnode.PATH)).data)
        assert found.broker_id == 1
        for broker in world.brokers.values():
            (told,) = broker.requests
            assert isinstance(told, UpdateMetadataRequest)
            assert told.broker_epoch == world.epoch_of(broker.broker_id)
            assert broker.live == {1, 2, 3}


async def test_new_topic_is_led_by_its_first_replica_and_sent_to_all_brokers(
    tmp_path: Path,
) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [2, 3], 1: [3, 1]})
        state = await world.state("orders", 0)
        assert (state.leader, state.leader_epoch, state.isr) == (2, 0, (2, 3))
        first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
        assert set(world.brokers[1].states) == {second}
        assert set(world.brokers[2].states) == {first}
        assert set(world.brokers[3].states) == {first, second}
        assert world.brokers[3].states[first].is_new
        for broker in world.brokers.values():
            assert broker.metadata[first].leader == 2
            assert broker.metadata[second].leader == 3


async def test_leaders_are_sent_before_the_request_is_answered(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await world.controller.create_topic(NewTopic("orders", 1, 3))
        # The response came after the controller's own broker had processed both requests.
        kinds = [type(request) for request in world.brokers[1].requests]
        assert kinds[1:] == [LeaderAndIsrRequest, UpdateMetadataRequest]


async def test_broker_that_is_not_the_controller_rejects_requests(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await world.controller.stop()
        assert not world.controller.is_active
        with pytest.raises(ApiError) as refused:
            await world.controller.create_topic(NewTopic("orders"))
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert await world.store.exists(ControllerZnode.PATH) is None


async def elect_another_broker(world: Simulation) -> None:
    """Let broker 2 be elected as after the end of this broker's session: node and epoch at once."""
    await world.store.multi(
        [
            Delete(ControllerZnode.PATH),
            Create(ControllerZnode.PATH, ControllerZnode(2, 0).encode(), ephemeral=True),
            SetData(ControllerEpochZnode.PATH, b"2"),
        ]
    )


async def test_zombie_controller_writes_nothing_and_resigns(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1, 2]})
        before = await world.state("orders")
        await elect_another_broker(world)
        with pytest.raises(ApiError) as refused:
            await world.controller.create_topic(NewTopic("late"))
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert not world.controller.is_active
        assert await world.store.exists(TopicZnode.path("late")) is None
        assert await world.state("orders") == before


async def test_expired_session_ends_the_controllership_until_the_broker_registers_again(
    tmp_path: Path,
) -> None:
    async with simulation(tmp_path) as world:
        world.store.expire_session()
        assert not world.controller.is_active
        await world.store.exists("/")
        assert not world.controller.is_active
        world.controller.rejoined()
        await world.until(lambda: world.controller.is_active)
        await world.settle()
        assert world.controller.epoch == 2


@pytest.mark.parametrize(
    ("question", "changed"), [("exists", ControllerZnode.PATH), ("children", BrokerIdZnode.path(2))]
)
async def test_regression_session_that_expires_during_an_event_is_not_an_error(
    question: str,
    changed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def expired(path: str) -> None:
        raise SessionExpired(path)

    async with simulation(tmp_path) as world:
        data = (await world.store.get(changed)).data
        monkeypatch.setattr(world.store, question, expired)
        await world.store.set(changed, data)
        await world.until(lambda: not world.controller.is_active)
        monkeypatch.undo()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_deleting_the_controller_node_triggers_an_election(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await world.store.delete(ControllerZnode.PATH)
        await world.until(lambda: world.controller.is_active and world.controller.epoch == 2)


async def test_next_controller_reads_the_same_state(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [2, 3], 1: [3, 1]})
        await world.controller.stop()
        await world.kill(3)
        world.start_controller()
        await world.controller.start()
        await world.settle()
        assert (await world.state("orders", 0)).isr == (2,)
        state = await world.state("orders", 1)
        assert (state.leader, state.isr, state.controller_epoch) == (1, (1,), 2)
        assert world.brokers[1].metadata[TopicPartition("orders", 0)].offline_replicas == [3]


async def test_blocks_of_producer_ids_are_allocated_once(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:

        async def ask(broker_id: int, broker_epoch: int) -> tuple[int, int]:
            request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
            block = await world.controller.allocate_producer_ids(request)
            return block.producer_id_start, block.producer_id_len

        assert await ask(2, world.epoch_of(2)) == (0, 1000)
        assert await ask(3, world.epoch_of(3)) == (1000, 1000)
        for broker_id, epoch, code in (
            (2, world.epoch_of(2) - 1, ErrorCode.STALE_BROKER_EPOCH),
            (9, 1, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ):
            with pytest.raises(ApiError) as refused:
                await ask(broker_id, epoch)
            assert refused.value.code == code


async def test_a_malformed_node_does_not_affect_the_others(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [1]})
        await world.controller.stop()
        await world.store.create(TopicZnode.path("broken"), b"{")
        world.start_controller()
        await world.controller.start()
        assert world.controller.is_active
        await create(world, "more", {0: [2]})
        assert (await world.state("more")).leader == 2


async def test_zombie_that_reads_a_newer_state_resigns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2]})
        await elect_another_broker(world)
        await world.kill(3)
        await world.until(lambda: not world.controller.is_active)
        assert (await world.state("orders")).leader == 3
        assert "failed" not in caplog.text


async def test_the_first_controller_creates_the_feature_node_as_kafka_does(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        node = await world.store.get("/feature")
        assert node.data == b'{"features":{},"version":2,"status":1}'
        assert node.stat.version == 0
        finalized = b'{"features":{"f":{"max_version_level":1}},"version":2,"status":1}'
        await world.store.set("/feature", finalized)
        await world.controller.stop()
        world.start_controller()
        await world.controller.start()
        assert (await world.store.get("/feature")).data == finalized


async def test_regression_late_timer_of_a_resigned_controller_does_not_end_the_next_one(
    tmp_path: Path,
) -> None:
    """Found by seed 2025 of the simulation: the preferred leader election of the old controller
    ran in the new one, could not write, and made that resign too."""
    async with simulation(tmp_path) as world:
        await world.settle()
        old = world.controller._active
        assert old is not None
        await world.store.delete(ControllerZnode.PATH)
        await world.until(lambda: world.controller.is_active and world.controller.epoch == 2)
        old.services.later("leader rebalance", lambda: old.services.store.write([]))
        await world.settle()
        assert world.controller.epoch == 2


async def test_regression_event_of_a_resigned_controller_does_not_stand_for_that_of_the_next(
    tmp_path: Path,
) -> None:
    async with simulation(tmp_path) as world:
        await world.settle()
        old = world.controller._active
        assert old is not None
        await world.store.delete(ControllerZnode.PATH)
        await world.until(lambda: world.controller.is_active and world.controller.epoch == 2)
        new = world.controller._active
        assert new is not None
        ran: list[str] = []

        async def run(name: str) -> None:
            ran.append(name)

        old.services.later("broker change", lambda: run("old"))
        new.services.later("broker change", lambda: run("new"))
        await world.settle()
        assert ran == ["new"]


async def test_regression_late_response_of_a_previous_session_does_not_halt_a_deletion(
    tmp_path: Path,
) -> None:
    """Found by seed 10076 of the simulation: the topic was never deleted, nor created again."""
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [2, 3]})
        active = world.controller._active
        assert active is not None
        old_epoch = world.epoch_of(2)
        await world.bounce(2)
        await world.settle()
        name = TopicPartition("orders", 0)
        context = active.services.context
        context.topics_to_delete.add("orders")
        context.replica_states[Replica(name, 2)] = ReplicaState.DELETION_STARTED
        stale = StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        world.controller._stop_replica_answered(2, old_epoch, stale, frozenset({name}))
        await world.settle()
        assert context.state_of(Replica(name, 2)) is ReplicaState.DELETION_STARTED
        assert "orders" not in context.ineligible_topics
