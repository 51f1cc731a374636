"""Elections by request, by znode, and by the check for preferred leaders."""

from pathlib import Path

from broker.controller.replica_leader_election import ElectionType
from broker.errors import ErrorCode
from broker.metadata.znodes.admin import PreferredReplicaElectionZnode
from broker.metadata.znodes.notifications import IsrChangeZnode
from broker.metadata.znodes.topics import PartitionStateZnode
from broker.model import TopicPartition
from tests.controller.simulation import Simulation, simulation
from tests.controller.test_kafka_controller import create
from tests.controller.test_reassignment_manager import in_sync

ORDERS = TopicPartition("orders", 0)


async def led_elsewhere(world: Simulation, partitions: int = 1) -> None:
    """`orders`, whose preferred leader 3 failed and returned: broker 2 leads, 3 is in the ISR."""
    await create(world, "orders", {index: [3, 2] for index in range(partitions)})
    await world.kill(3)
    await world.settle()
    await world.add_broker(3)
    await world.settle()
    for index in range(partitions):
        assert await in_sync(world, TopicPartition("orders", index), [2, 3]) == 0


async def test_preferred_leader_is_elected_on_request(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await led_elsewhere(world)
        outcome = await world.controller.elect_leaders([ORDERS], ElectionType.PREFERRED)
        assert outcome == {ORDERS: None}
        await world.settle()
        assert (await world.state("orders")).leader == 3
        assert world.brokers[2].states[ORDERS].leader == 3


async def test_impossible_elections_return_their_errors(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2], 1: [1, 2]})
        await world.kill(3)
        await world.settle()
        second, missing = TopicPartition("orders", 1), TopicPartition("orders", 7)
        outcome = await world.controller.elect_leaders(
            [ORDERS, second, missing], ElectionType.PREFERRED
        )
        codes = {name: error and error.code for name, error in outcome.items()}
        assert codes == {
            ORDERS: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            second: ErrorCode.ELECTION_NOT_NEEDED,
            missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert str(outcome[ORDERS]) == (
            "Failed to elect leader for partition orders-0 under strategy "
            "PreferredReplicaPartitionLeaderElectionStrategy"
        )


async def test_unclean_election_on_request_elects_any_live_replica(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2]})
        for broker_id in (2, 3):
            await world.kill(broker_id)
            await world.settle()
        await world.add_broker(2)
        await world.settle()
        assert (await world.state("orders")).leader == -1
        outcome = await world.controller.elect_leaders([ORDERS], ElectionType.UNCLEAN)
        assert outcome == {ORDERS: None}
        assert (await world.state("orders")).leader == 2


async def test_preferred_replica_election_znode_is_processed_and_deleted(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await led_elsewhere(world)
        path = PreferredReplicaElectionZnode.PATH
        wanted = [ORDERS, TopicPartition("nothing", 0)]
        await world.store.create(path, PreferredReplicaElectionZnode.encode(wanted))
        await world.settle()
        assert (await world.state("orders")).leader == 3
        assert await world.store.exists(path) is None


async def test_imbalance_above_the_threshold_elects_preferred_leaders(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await led_elsewhere(world, partitions=4)
        active = world.controller._active
        assert active is not None
        await active.elections.rebalance()
        assert [(await world.state("orders", i)).leader for i in range(4)] == [3] * 4


async def test_imbalance_below_the_threshold_elects_nothing(tmp_path: Path) -> None:
    async with simulation(tmp_path, leader_imbalance_per_broker_percentage=50) as world:
        await led_elsewhere(world, partitions=4)
        wanted = [TopicPartition("orders", index) for index in (0, 1)]
        await world.controller.elect_leaders(wanted, ElectionType.PREFERRED)
        active = world.controller._active
        assert active is not None
        await active.elections.rebalance()
        assert [(await world.state("orders", i)).leader for i in range(4)] == [3, 3, 2, 2]


async def test_isr_written_by_a_leader_is_read_and_sent(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [2, 3]})
        state = PartitionStateZnode(2, 0, (2,), 1)
        await world.store.set(PartitionStateZnode.path(ORDERS), state.encode())
        await world.store.create(
            IsrChangeZnode.PREFIX, IsrChangeZnode.encode([ORDERS]), sequence=True
        )
        await world.settle()
        assert world.brokers[1].metadata[ORDERS].isr == [2]
        assert await world.store.children(IsrChangeZnode.PARENT) == []


async def test_election_uses_a_state_that_others_wrote(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2, 1]})
        # The leader has written a smaller ISR and fails before it has notified the controller.
        state = PartitionStateZnode(3, 0, (3, 1), 1)
        await world.store.set(PartitionStateZnode.path(ORDERS), state.encode())
        await world.kill(3)
        await world.settle()
        found = await world.state("orders")
        assert (found.leader, found.isr, found.leader_epoch) == (1, (1,), 1)
