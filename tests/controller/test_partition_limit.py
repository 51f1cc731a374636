"""Very many partitions: in a request, and in the store that a controller starts with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.controller.controller_channel_manager import ControlRequest
from broker.errors import ErrorCode
from broker.metadata.embedded import EmbeddedStore
from broker.metadata.recursive import ensure_path
from broker.metadata.znodes.layout import persistent_paths
from broker.metadata.znodes.topics import ReplicaAssignment, TopicZnode
from broker.model import TopicPartition, Uuid
from broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from tests.conformance.admin_topics import create, look_at, topic
from tests.controller.simulation import simulation
from tests.support.broker import RunningBroker, running_broker
from tests.support.wire import WireClient

TOO_MANY = (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _grow(name: str, count: int, *, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
        timeout_ms=10_000,
        validate_only=validate_only,
    )


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("count", [10_001, 1_000_000, 2**31 - 2])
def test_regression_huge_partition_counts_are_rejected_before_an_assignment_is_computed(
    broker: RunningBroker, count: int, validate_only: bool
) -> None:
    """2^31-2 partitions stopped the broker for good and took all memory, even to validate."""
    with WireClient(broker.bootstrap_servers) as wire:
        wire.ask(create(topic("orders")), 7)
        request = CreateTopicsRequest(
            topics=[topic("huge", count)], timeout_ms=10_000, validate_only=validate_only
        )
        (made,) = wire.ask(request, 7).topics
        assert (made.error_code, made.error_message) == TOO_MANY
        (grown,) = wire.ask(_grow("orders", count + 1, validate_only=validate_only), 3).results
        assert (grown.error_code, grown.error_message) == TOO_MANY
        unknown, known = wire.ask(look_at("huge", "orders"), 12).topics[::-1]
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert len(known.partitions) == 1


def test_the_limit_counts_all_topics_of_a_request(tmp_path: Path) -> None:
    with (
        running_broker(
            tmp_path, max_partitions_per_request=5, num_partitions=2, broker_id=1
        ) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        manual = topic("manual", manual={0: [1], 1: [1]})
        both = create(topic("counted", 2), topic("default", -1), manual)
        made = wire.ask(both, 7).topics
        assert {(t.error_code, t.error_message) for t in made} == {TOO_MANY}
        made = wire.ask(create(topic("counted", 3), topic("default", -1)), 7).topics
        assert [t.error_code for t in made] == [0, 0]


def test_a_topic_grows_beyond_the_limit_in_several_requests(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path, max_partitions_per_request=3) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        wire.ask(create(topic("orders", 3)), 7)
        assert wire.ask(_grow("orders", 6), 3).results[0].error_code == 0
        (refused,) = wire.ask(_grow("orders", 10), 3).results
        assert (refused.error_code, refused.error_message) == TOO_MANY
        assert len(wire.ask(look_at("orders"), 12).topics[0].partitions) == 6


async def _store_with_uncreated_topic(directory: Path, num_partitions: int) -> None:
    """A store as a tool, or a controller that stopped half-way, leaves it: no partition states."""
    store = EmbeddedStore.open(directory / "metadata.db")
    for path in persistent_paths():
        await ensure_path(store, path)
    assignment = {index: ReplicaAssignment((1,)) for index in range(num_partitions)}
    topic_node = TopicZnode("huge", Uuid.random(), assignment)
    await store.create(TopicZnode.path("huge"), topic_node.encode())
    await store.close()


async def test_regression_a_huge_topic_in_the_store_does_not_delay_the_start(
    tmp_path: Path,
) -> None:
    """A broker with a million uncreated partitions in its store did not start for minutes."""
    await _store_with_uncreated_topic(tmp_path, 6000)
    async with simulation(tmp_path, brokers=1) as world:
        own = world.brokers[1]
        assert 1000 <= len(own.states) < 6000
        await world.until(lambda: len(own.metadata) == 6000)
        assert len(own.states) == 6000
        assert (await world.state("huge", 5999)).leader == 1


async def test_a_huge_topic_can_be_deleted_while_it_is_being_created(tmp_path: Path) -> None:
    await _store_with_uncreated_topic(tmp_path, 5000)
    async with simulation(tmp_path, brokers=1) as world:
        own = world.brokers[1]
        await world.controller.delete_topic("huge")
        await world.settle()
        assert not any(TopicPartition("huge", 4999) in asked for asked in _led(own.requests))
        assert own.states == {}
        assert own.metadata == {}
        assert await world.store.exists(TopicZnode.path("huge")) is None


def _led(requests: list[ControlRequest]) -> Iterator[set[TopicPartition]]:
    for request in requests:
        if isinstance(request, LeaderAndIsrRequest):
            for state in request.topic_states:
                yield {
                    TopicPartition(state.topic_name, p.partition_index)
                    for p in state.partition_states
                }
