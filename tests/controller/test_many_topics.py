"""Many topics in one request: created together, each with its own outcome."""

from pathlib import Path
from typing import Any

import pytest

from broker.controller.fenced_store import FencedStore
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.configs import ConfigEntityZnode
from broker.metadata.znodes.topics import ReplicaAssignment, TopicZnode
from broker.model import TopicPartition
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.controller.simulation import simulation
from tests.support.broker import running_broker
from tests.support.wire import WireClient


def new_topic(name: str, num_partitions: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=num_partitions, replication_factor=1)


async def test_failed_topics_do_not_affect_the_others(tmp_path: Path) -> None:
    async with simulation(tmp_path) as world:
        outcomes = await world.controller.create_topics(
            [
                NewTopic("first.topic", 2, 3),
                NewTopic("wide", 1, 9),
                NewTopic("first_topic", 1, 1),
                NewTopic("odd", 1, 1, configs={"cleanup.policy": "sometimes"}),
                NewTopic("last", 1, 2, configs={"retention.ms": "5000"}),
            ]
        )
        await world.settle()
        codes = [one.code if isinstance(one, ApiError) else ErrorCode.NONE for one in outcomes]
        assert codes == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            ErrorCode.INVALID_TOPIC_EXCEPTION,  # collides with the first one
            ErrorCode.INVALID_CONFIG,
            ErrorCode.NONE,
        ]
        leaders = {name for broker in world.brokers.values() for name in broker.metadata}
        assert leaders == {
            TopicPartition("first.topic", 0),
            TopicPartition("first.topic", 1),
            TopicPartition("last", 0),
        }
        configs = await world.store.get(ConfigEntityZnode.path("topics", "last"))
        assert configs.data == ConfigEntityZnode.encode({"retention.ms": "5000"})
        for name in ("wide", "first_topic", "odd"):
            assert await world.store.exists(TopicZnode.path(name)) is None


async def test_topic_that_a_tool_has_just_written_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulation(tmp_path) as world:
        for name in ("before", "written"):  # configs that deleted topics have left behind
            await world.store.create(
                ConfigEntityZnode.path("topics", name),
                ConfigEntityZnode.encode({"retention.ms": "1"}),
            )
        written = TopicZnode("written", None, {0: ReplicaAssignment((2,))})
        read = FencedStore.get_all

        async def read_then_write(store: FencedStore, paths: Any) -> Any:
            """The tool writes after the controller has planned, and before it writes."""
            found = await read(store, paths)
            if "written" in paths and not await world.store.exists(TopicZnode.path("written")):
                await world.store.create(TopicZnode.path("written"), written.encode())
            return found

        monkeypatch.setattr(FencedStore, "get_all", read_then_write)
        before, refused, after = await world.controller.create_topics(
            [NewTopic("before", 1, 1), NewTopic("written", 3, 3), NewTopic("after", 1, 1)]
        )
        await world.settle()
        assert isinstance(refused, ApiError)
        assert refused.code is ErrorCode.TOPIC_ALREADY_EXISTS
        for outcome in (before, after):
            assert not isinstance(outcome, ApiError)
            assert outcome.is_led
        assert set((await world.topic("written")).assignment) == {0}
        assert (await world.state("written")).leader == 2
        configs = await world.store.get(ConfigEntityZnode.path("topics", "before"))
        assert configs.data == ConfigEntityZnode.encode({})


def test_results_have_the_order_of_the_request_across_slices(tmp_path: Path) -> None:
    names = [f"topic-{number}" for number in range(12)]
    topics = [new_topic(name, 200) for name in names]
    topics[3] = new_topic(names[3], 0)
    topics[7] = new_topic(names[6], 1)  # named twice
    with running_broker(tmp_path) as broker, WireClient(broker.bootstrap_servers) as wire:
        response = wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert [topic.name for topic in response.topics] == [topic.name for topic in topics]
    failed = {n: topic.error_code for n, topic in enumerate(response.topics) if topic.error_code}
    assert failed == {
        3: ErrorCode.INVALID_PARTITIONS,
        6: ErrorCode.INVALID_REQUEST,
        7: ErrorCode.INVALID_REQUEST,
    }
    assert {topic.num_partitions for topic in response.topics} == {200, -1}
