"""The metadata cache: what UpdateMetadata makes of it."""

import tracemalloc

import pytest

from broker.errors import ErrorCode
from broker.metadata_cache import MetadataCache
from broker.model import TopicPartition, Uuid
from broker.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

_LEADER_DURING_DELETE = -2
_TOPIC_ID = Uuid.random()


def _request(
    *leaders: tuple[int, int], topic: str = "orders", replicas: tuple[int, ...] = (1,)
) -> UpdateMetadataRequest:
    states = [
        UpdateMetadataPartitionState(
            partition_index=index, leader=leader, isr=[1], replicas=list(replicas)
        )
        for index, leader in leaders
    ]
    of_topic = UpdateMetadataTopicState(
        topic_name=topic, topic_id=_TOPIC_ID, partition_states=states
    )
    return UpdateMetadataRequest(controller_id=1, topic_states=[of_topic])


def test_regression_memory_of_an_update_does_not_depend_on_the_partition_index() -> None:
    """72 bytes with index 2^31-1 made the broker allocate 16 GiB."""
    cache = MetadataCache("cluster")
    tracemalloc.start()
    try:
        cache.update(_request((20_000_000, 1)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    cache.update(_request((2**31 - 1, 1)))
    assert list(cache.topics["orders"].partitions) == [20_000_000, 2**31 - 1]


def test_partitions_are_listed_in_the_order_of_their_indexes() -> None:
    cache = MetadataCache("cluster")
    cache.update(_request((2, 1), (0, 1)))
    cache.update(_request((1, 3)))
    assert list(cache.topics["orders"].partitions) == [0, 1, 2]
    assert cache.topics["orders"].partitions[1].leader == 3


def test_an_index_that_was_never_sent_is_no_partition() -> None:
    cache = MetadataCache("cluster")
    cache.update(_request((5, 1)))
    assert cache.has_partition("orders", 5)
    assert not cache.has_partition("orders", 4)
    assert cache.partition("orders", 6) is None
    assert cache.partition("payments", 5) is None


def test_a_topic_is_removed_with_its_last_partition() -> None:
    cache = MetadataCache("cluster")
    cache.update(_request((0, 1), (1, 1)))
    deleted, _ = cache.update(_request((0, _LEADER_DURING_DELETE)))
    assert deleted == [TopicPartition("orders", 0)]
    assert list(cache.topics["orders"].partitions) == [1]
    cache.update(_request((1, _LEADER_DURING_DELETE)))
    assert not cache.topics
    assert not cache.names


def test_an_update_without_partitions_adds_no_topic() -> None:
    cache = MetadataCache("cluster")
    cache.update(_request())
    assert not cache.topics


@pytest.mark.parametrize("name", ["", ".", "..", "evil/sub", "../evil", "a b", "a" * 250])
def test_regression_a_topic_with_an_illegal_name_is_left_out(name: str) -> None:
    cache = MetadataCache("cluster")
    request = _request((0, 1), topic=name)
    request.topic_states.append(_request((0, 1)).topic_states[0])
    assert cache.update(request).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert list(cache.topics) == ["orders"]


def test_regression_a_topic_with_a_negative_number_is_left_out() -> None:
    cache = MetadataCache("cluster")
    assert cache.update(_request((-1, 1))).error_code == ErrorCode.INVALID_REQUEST
    request = _request((0, 1), replicas=(1, -3))
    assert cache.update(request).error_code == ErrorCode.INVALID_REQUEST
    assert not cache.topics


def test_large_update_is_sorted_and_visible_only_as_a_whole() -> None:
    cache = MetadataCache("cluster")
    cache.update(_request((7, 1), topic="old"))
    indexes = [(index * 7919) % 20_000 for index in range(20_000)]
    request = _request(*((index, 1) for index in indexes))
    for number in range(1_500):
        leader = _LEADER_DURING_DELETE if number == 3 else 1
        request.topic_states.extend(_request((0, leader), topic=f"topic-{number}").topic_states)
    request.topic_states.extend(_request((7, _LEADER_DURING_DELETE), topic="old").topic_states)
    num_slices = 0
    for _ in cache.update_in_slices(request):
        num_slices += 1
        assert list(cache.topics) == ["old"]
    assert num_slices > 1_000
    assert list(cache.topics["orders"].partitions) == list(range(20_000))
    assert len(cache.topics) == 1_500
    assert not cache.topics.keys() & {"old", "topic-3"}


def test_topic_that_is_listed_twice_gets_the_partitions_of_both() -> None:
    cache = MetadataCache("cluster")
    request = _request((4, 1), (2, 1))
    request.topic_states.extend(_request((3, 5), (2, 6)).topic_states)
    cache.update(request)
    found = cache.topics["orders"].partitions
    assert {index: state.leader for index, state in found.items()} == {2: 6, 3: 5, 4: 1}
    assert list(found) == [2, 3, 4]
