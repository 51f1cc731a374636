"""Elections that somebody asks for, and those that bring preferred leaders back."""

from pathlib import Path

from broker.controller.elections import ElectionType
from broker.errors import ErrorCode
from broker.metadata.znodes.admin import PreferredReplicaElectionZnode
from broker.metadata.znodes.notifications import IsrChangeZnode
from broker.metadata.znodes.topics import PartitionStateZnode
from broker.model import TopicPartition
from tests.controller.simulation import Simulation, simulation
from tests.controller.test_controller import create
from tests.controller.test_reassigning import in_sync

ORDERS = TopicPartition("orders", 0)


async def led_elsewhere(world: Simulation, partitions: int = 1) -> None:
    """`orders`, whose preferred leader 3 was gone for a while: broker 2 leads, 3 is in sync."""
    await create(world, "orders", {index: [3, 2] for index in range(partitions)})
    await world.kill(3)
    await world.settle()
    await world.add_broker(3)
    await world.settle()
    for index in range(partitions):
        assert await in_sync(world, TopicPartition("orders", index), [2, 3]) == 0


async def test_preferred_leader_is_elected_when_asked_for(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await led_elsewhere(world)
        outcome = await world.controller.elect_leaders([ORDERS], ElectionType.PREFERRED)
        assert outcome == {ORDERS: None}
        await world.settle()
        assert (await world.state("orders")).leader == 3
        assert world.brokers[2].states[ORDERS].leader == 3


async def test_elections_that_are_not_possible_say_why(tmp_path: Path) -> None:
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


async def test_unclean_election_when_asked_for_takes_whoever_is_there(tmp_path: Path) -> None:
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


async def test_old_znode_elects_preferred_leaders_and_goes(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await led_elsewhere(world)
        path = PreferredReplicaElectionZnode.PATH
        wanted = [ORDERS, TopicPartition("nothing", 0)]
        await world.store.create(path, PreferredReplicaElectionZnode.encode(wanted))
        await world.settle()
        assert (await world.state("orders")).leader == 3
        assert await world.store.exists(path) is None


async def test_too_many_leaders_elsewhere_are_brought_back(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await led_elsewhere(world, partitions=4)
        active = world.controller._active
        assert active is not None
        await active.elections.rebalance()
        assert [(await world.state("orders", i)).leader for i in range(4)] == [3] * 4


async def test_few_leaders_elsewhere_are_left_there(tmp_path: Path) -> None:
    async with simulation(tmp_path, leader_imbalance_per_broker_percentage=50) as world:
        await led_elsewhere(world, partitions=4)
        wanted = [TopicPartition("orders", index) for index in (0, 1)]
        await world.controller.elect_leaders(wanted, ElectionType.PREFERRED)
        active = world.controller._active
        assert active is not None
        await active.elections.rebalance()
        assert [(await world.state("orders", i)).leader for i in range(4)] == [3, 3, 2, 2]


async def test_isr_that_a_leader_wrote_itself_is_noted(tmp_path: Path) -> None:
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


async def test_election_takes_a_state_that_others_wrote_into_account(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        await create(world, "orders", {0: [3, 2, 1]})
        # The leader has shrunk the ISR in the store, and dies before anybody was told.
        state = PartitionStateZnode(3, 0, (3, 1), 1)
        await world.store.set(PartitionStateZnode.path(ORDERS), state.encode())
        await world.kill(3)
        await world.settle()
        found = await world.state("orders")
        assert (found.leader, found.isr, found.leader_epoch) == (1, (1,), 1)
