"""Runs the scripts of tests/scenarios/election-*.txt: commands, `----`, what happened.

    create TOPIC P=REPLICAS …    create a topic: `create orders 0=1,2,3`
    kill BROKER · start BROKER · bounce BROKER (ends and comes back before the controller looks)
    shutdown BROKER              ControlledShutdown; prints the partitions that it still leads
    isr PARTITION BROKERS        the leader requests this ISR with AlterPartition
    elect preferred|unclean PARTITION
    reassign PARTITION REPLICAS · cancel PARTITION
    unclean TOPIC                sets unclean.leader.election.enable=true for the topic
    fail BROKER PARTITION        the broker's log directory with this partition fails
    rebalance                    the periodic check for leaders that are not preferred
    restart                      the controller ends, and is elected again in a new epoch
    delete TOPIC · state TOPIC

After the commands of a block the requests that the brokers received are printed, in their order;
an UpdateMetadata that went to several brokers alike is printed once. The controller is real, and so
is its store; brokers are simulated (tests/controller/simulation.py). `pytest --rewrite` writes what
happens into the scripts: read the diff before you commit it.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from broker.config.dynamic import EntityType
from broker.controller.controller_channel_manager import ControlRequest
from broker.controller.replica_leader_election import ElectionType
from broker.controller.states import PartitionState
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.notifications import LogDirEventZnode
from broker.model import TopicPartition
from broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from broker.protocol.messages.stop_replica import StopReplicaRequest
from broker.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.controller.simulation import Simulation, simulation
from tests.controller.test_reassignment_manager import in_sync

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("election-*.txt"))
NUM_BROKERS = 4


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids)) or "none"


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


class Script:
    """Runs commands and prints what happened."""

    def __init__(self, world: Simulation) -> None:
        self.world = world
        self.out: list[str] = []
        self.printed: dict[int, tuple[object, int]] = {}
        """By broker: the simulated broker, and how many of its requests have been printed."""

    async def run(self, line: str) -> None:
        command, *words = line.split()
        try:
            await getattr(self, f"do_{command}")(*words)
        except ApiError as error:
            self.out.append(f"{error.code.name}: {error}")
        await self.world.settle()

    # Commands

    async def do_create(self, topic: str, *assignments: str) -> None:
        manual = {int(a.split("=")[0]): _numbers(a.split("=")[1]) for a in assignments}
        await self.world.controller.create_topic(NewTopic(topic, manual_assignment=manual))

    async def do_kill(self, broker_id: str) -> None:
        await self.world.kill(int(broker_id))

    async def do_start(self, broker_id: str) -> None:
        await self.world.add_broker(int(broker_id))

    async def do_bounce(self, broker_id: str) -> None:
        await self.world.bounce(int(broker_id))

    async def do_shutdown(self, broker_id: str) -> None:
        epoch = self.world.epoch_of(int(broker_id))
        request = ControlledShutdownRequest(broker_id=int(broker_id), broker_epoch=epoch)
        response = await self.world.controller.controlled_shutdown(request)
        left = [f"{p.topic_name}-{p.partition_index}" for p in response.remaining_partitions]
        self.out.append(f"still leads {' '.join(left) or 'nothing'}")

    async def do_isr(self, partition: str, isr: str) -> None:
        code = await in_sync(self.world, _partition(partition), _numbers(isr))
        if code:
            self.out.append(ErrorCode(code).name)

    async def do_elect(self, kind: str, partition: str) -> None:
        names = [_partition(partition)]
        outcome = await self.world.controller.elect_leaders(names, ElectionType[kind.upper()])
        error = outcome[names[0]]
        self.out.append("elected" if error is None else f"{error.code.name}: {error}")

    async def do_reassign(self, partition: str, replicas: str) -> None:
        await self.world.controller.reassign(_partition(partition), _numbers(replicas))

    async def do_cancel(self, partition: str) -> None:
        await self.world.controller.reassign(_partition(partition), None)

    async def do_unclean(self, topic: str) -> None:
        allowed = {"unclean.leader.election.enable": "true"}
        self.world.configs.apply(EntityType.TOPIC, topic, allowed)

    async def do_fail(self, broker_id: str, partition: str) -> None:
        self.world.brokers[int(broker_id)].failed_dirs.add(_partition(partition))
        note = LogDirEventZnode.encode(int(broker_id))
        await self.world.store.create(LogDirEventZnode.PREFIX, note, sequence=True)

    async def do_rebalance(self) -> None:
        active = self.world.controller._active
        assert active is not None
        await active.elections.rebalance()

    async def do_restart(self) -> None:
        await self.world.controller.stop()
        self.world.start_controller()
        await self.world.controller.start()

    async def do_delete(self, topic: str) -> None:
        await self.world.controller.delete_topic(topic)

    async def do_state(self, topic: str) -> None:
        active = self.world.controller._active
        assert active is not None
        context = active.services.context
        if topic not in context.assignments:
            self.out.append("no such topic")
        for name in context.partitions_of(topic):
            assigned, known = context.assignment(name), context.leaderships.get(name)
            state = context.partition_states.get(name, PartitionState.NON_EXISTENT)
            line = f"{name} {state} replicas {_ids(assigned.replicas)}"
            if assigned.adding_replicas or assigned.removing_replicas:
                line += f" adding {_ids(assigned.adding_replicas)}"
                line += f" removing {_ids(assigned.removing_replicas)}"
            if known is not None:
                line += f" leader {known.leader} epoch {known.leader_epoch} isr {_ids(known.isr)}"
                line += " recovering" if known.is_recovering else ""
            self.out.append(line)

    # What the brokers received

    def report(self) -> None:
        """Print the requests since the last report; those that brokers got alike, once."""
        received: dict[str, list[int]] = {}
        for broker_id, broker in sorted(self.world.brokers.items()):
            printed_broker, count = self.printed.get(broker_id, (None, 0))
            start = count if printed_broker is broker else 0
            for request in broker.requests[start:]:
                for line in _show(request):
                    received.setdefault(line, []).append(broker_id)
            self.printed[broker_id] = (broker, len(broker.requests))
        for line, broker_ids in received.items():
            self.out.append(f"{_ids(dict.fromkeys(broker_ids))} ← {line}")


def _show(request: ControlRequest) -> list[str]:
    match request:
        case LeaderAndIsrRequest():
            return [
                f"LeaderAndIsr {topic.topic_name}-{state.partition_index} leader {state.leader} "
                f"epoch {state.leader_epoch} isr {_ids(state.isr)} "
                f"replicas {_ids(state.replicas)}{' new' if state.is_new else ''}"
                for topic in request.topic_states
                for state in topic.partition_states
            ]
        case StopReplicaRequest():
            return [
                f"StopReplica {topic.topic_name}-{state.partition_index} "
                f"epoch {state.leader_epoch}{' delete' if state.delete_partition else ''}"
                for topic in request.topic_states
                for state in topic.partition_states
            ]
        case UpdateMetadataRequest():
            partitions = [
                f"{topic.topic_name}-{state.partition_index} leader {state.leader} "
                f"isr {_ids(state.isr)} offline {_ids(state.offline_replicas)}"
                for topic in request.topic_states
                for state in topic.partition_states
            ]
            live = _ids(sorted(broker.id for broker in request.live_brokers))
            return ["; ".join([f"UpdateMetadata live {live}", *partitions])]


async def _play(text: str, directory: Path) -> str:
    blocks = []
    async with simulation(directory, brokers=NUM_BROKERS, auto_leader_rebalance_enable=False) as w:
        await w.settle()
        script = Script(w)
        script.report()
        for block in text.strip().split("\n\n"):
            script.out.clear()
            lines = block.split("\n----")[0].split("\n")
            for line in lines:
                if line and not line.startswith("#"):
                    await script.run(line)
            script.report()
            blocks.append("\n".join([*lines, "----", *script.out]))
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, tmp_path: Path, request: Any) -> None:
    expected = path.read_text(encoding="utf-8")
    played = asyncio.run(_play(expected, tmp_path))
    if request.config.getoption("--rewrite"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == expected


def test_there_are_scenarios() -> None:
    assert SCENARIOS
