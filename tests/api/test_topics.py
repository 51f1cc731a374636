"""Topics: configs, restarts and dead brokers; tests/conformance compares the rest with Kafka."""

from pathlib import Path
from typing import Any

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conformance.admin_topics import create, look_at, topic
from tests.support.broker import RunningBroker, running_broker
from tests.support.wire import WireClient

OFFSETS_TOPIC = "__consumer_offsets"


def test_topics_cannot_be_deleted_where_that_is_switched_off(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path, delete_topic_enable="false") as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        wire.ask(create(topic("orders")), 7)
        for version in range(7):
            wanted: dict[str, Any] = {"topic_names": ["orders"]}
            if version >= 6:
                wanted = {"topics": [DeleteTopicState(name="orders")]}
            answer = wire.ask(DeleteTopicsRequest(timeout_ms=1000, **wanted), version)
            code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
            assert [(r.name, r.error_code) for r in answer.responses] == [("orders", code)]
        assert wire.ask(look_at("orders"), 12).topics[0].error_code == 0


def test_asking_for_a_topic_creates_it_with_the_brokers_defaults(tmp_path: Path) -> None:
    asked = [MetadataRequestTopic(name=name) for name in ("orders", "a/b", "orders")]
    with (
        running_broker(tmp_path, num_partitions=3) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        answer = wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=True), 12)
    found = {t.name: (t.error_code, len(t.partitions)) for t in answer.topics}
    assert found == {"orders": (0, 3), "a/b": (ErrorCode.INVALID_TOPIC_EXCEPTION, 0)}


def test_asking_creates_nothing_where_that_is_switched_off(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path, auto_create_topics_enable="false") as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        asked = [MetadataRequestTopic(name="orders")]
        answer = wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=True), 12)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_brokers_own_topic_is_internal_and_keeps_its_records(broker: RunningBroker) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        wanted = [MetadataRequestTopic(name=OFFSETS_TOPIC)]
        (seen,) = wire.ask(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=True), 12
        ).topics
        assert (seen.error_code, seen.is_internal, len(seen.partitions)) == (0, True, 50)
        partition = DeleteRecordsPartition(partition_index=0, offset=0)
        asked = DeleteRecordsTopic(name=OFFSETS_TOPIC, partitions=[partition])
        answer = wire.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=1000), 2)
        (result,) = answer.topics[0].partitions
        assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_regression_a_topic_whose_replicas_never_lived_is_not_listed(
    broker: RunningBroker,
) -> None:
    """It was listed with LEADER_NOT_AVAILABLE, which made every admin call of kafkajs fail.

    As in Kafka it is in no metadata, so that it cannot be deleted either, but its name is taken.
    """
    with WireClient(broker.bootstrap_servers) as wire:
        (made,) = wire.ask(create(topic("dead", manual={0: [9]})), 7).topics
        assert made.error_code == ErrorCode.REQUEST_TIMED_OUT
        every = wire.ask(MetadataRequest(topics=None), 12).topics
        assert "dead" not in [seen.name for seen in every]
        (seen,) = wire.ask(look_at("dead"), 12).topics
        assert seen.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        asked = [MetadataRequestTopic(name="dead")]
        wanted = MetadataRequest(topics=asked, allow_auto_topic_creation=True)
        (seen,) = wire.ask(wanted, 12).topics
        assert seen.error_code == ErrorCode.LEADER_NOT_AVAILABLE
        state = DeleteTopicState(name="dead")
        (deleted,) = wire.ask(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6).responses
        assert deleted.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (made,) = wire.ask(create(topic("dead")), 7).topics
        assert made.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_only_partitions_that_have_had_a_leader_are_listed(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path, broker_id=1) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        wire.ask(create(topic("half", manual={0: [9], 1: [1]})), 7)
        (seen,) = wire.ask(look_at("half"), 12).topics
        assert [partition.partition_index for partition in seen.partitions] == [1]


def reassign(name: str, replicas: list[int] | None) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=[partition])]
    )


@pytest.fixture
def look(tmp_path: Path) -> Any:
    """Restart a broker on the same files and send it requests."""

    def ask(question: Any) -> Any:
        with (
            running_broker(tmp_path, broker_id=1) as broker,
            WireClient(broker.bootstrap_servers) as wire,
        ):
            return question(wire)

    return ask


def test_reassignments_outlive_a_restart(look: Any) -> None:
    def begin(wire: WireClient) -> None:
        half = {0: [1, 9]}
        wire.ask(create(topic("moving", manual=half), topic("moved", manual=half)), 7)
        for name, replicas in (("moving", [9]), ("moved", [1])):
            answer = wire.ask(reassign(name, replicas), 0)
            assert answer.responses[0].partitions[0].error_code == 0

    def see(wire: WireClient) -> None:
        (moving,) = wire.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics
        (partition,) = moving.partitions
        assert (moving.name, partition.replicas) == ("moving", [9, 1])
        assert (partition.adding_replicas, partition.removing_replicas) == ([], [1])
        (moved,) = wire.ask(look_at("moved"), 12).topics
        (seen,) = moved.partitions
        assert (seen.leader_epoch, seen.replica_nodes, seen.isr_nodes) == (1, [1], [1])
        assert wire.ask(reassign("moving", None), 0).responses[0].partitions[0].error_code == 0
        assert wire.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics == []

    look(begin)
    look(see)


def test_partition_that_lost_its_leader_elects_at_the_next_start(tmp_path: Path) -> None:
    """As with a directory and metadata that come from a cluster of several brokers."""
    with (
        running_broker(tmp_path, broker_id=1) as first,
        WireClient(first.bootstrap_servers) as wire,
    ):
        wire.ask(create(topic("orders", manual={0: [1, 2]})), 7)
    (tmp_path / "data" / "meta.properties").unlink()
    with (
        running_broker(tmp_path, broker_id=2) as second,
        WireClient(second.bootstrap_servers) as wire,
    ):
        (seen,) = wire.ask(look_at("orders"), 12).topics
        (partition,) = seen.partitions
        # Broker 2 was never in sync, and unclean leader election is disabled.
        assert (partition.leader_id, partition.leader_epoch) == (-1, 1)
        assert partition.offline_replicas == [1]
    (tmp_path / "data" / "meta.properties").unlink()
    with (
        running_broker(tmp_path, broker_id=1) as first,
        WireClient(first.bootstrap_servers) as wire,
    ):
        (seen,) = wire.ask(look_at("orders"), 12).topics
        (partition,) = seen.partitions
        assert (partition.leader_id, partition.leader_epoch, partition.isr_nodes) == (1, 2, [1])
