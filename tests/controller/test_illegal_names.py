"""Illegal names and numbers in requests of brokers, and messages too long for a response."""

from pathlib import Path

from broker.errors import ApiError, ErrorCode
from broker.model import Uuid
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    RequestPartitionData,
    RequestTopicData,
)
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.conformance.admin_topics import create, look_at, topic
from tests.support.broker import RunningBroker, running_broker
from tests.support.wire import ControllerFields, WireClient

CONTROL = ControllerFields(controller_id=1, controller_epoch=1, broker_epoch=-1)
ILLEGAL = ["", ".", "..", "evil/sub", "../evil", "x/../../evil", "/abs/evil", "e\0x", "a" * 250]


def _lead(name: str, index: int, replicas: list[int], leader: int) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=index, leader=leader, isr=replicas, replicas=replicas, is_new=True
    )
    states = LeaderAndIsrTopicState(
        topic_name=name, topic_id=Uuid.random(), partition_states=[state]
    )
    return LeaderAndIsrRequest(topic_states=[states], **CONTROL)


def _describe(name: str, index: int, replicas: list[int], leader: int) -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(
        partition_index=index, leader=leader, isr=replicas, replicas=replicas
    )
    states = UpdateMetadataTopicState(
        topic_name=name, topic_id=Uuid.random(), partition_states=[state]
    )
    return UpdateMetadataRequest(topic_states=[states], **CONTROL)


def _stop(name: str, index: int) -> StopReplicaRequest:
    state = StopReplicaPartitionState(partition_index=index, leader_epoch=-2, delete_partition=True)
    states = StopReplicaTopicState(topic_name=name, partition_states=[state])
    return StopReplicaRequest(topic_states=[states], **CONTROL)


def _codes(
    broker: RunningBroker, name: str, index: int, replicas: list[int], leader: int = 1
) -> list[int]:
    with WireClient(broker.bootstrap_servers) as wire:
        led = wire.ask(_lead(name, index, replicas, leader), 6)
        described = wire.ask(_describe(name, index, replicas, leader), 8)
        stopped = wire.ask(_stop(name, index), 4)
    return [
        led.topics[0].partition_errors[0].error_code,
        described.error_code,
        stopped.partition_errors[0].error_code,
    ]


def _directories(path: Path) -> set[Path]:
    return {found for found in path.rglob("*") if found.is_dir()}


def test_regression_control_requests_with_an_illegal_topic_create_nothing(
    tmp_path: Path,
) -> None:
    """`evil/sub` became the directory evil/sub-0; names with `..` gave a traceback."""
    with running_broker(tmp_path, broker_id=1) as broker:
        before = _directories(tmp_path)
        for name in ILLEGAL:
            assert _codes(broker, name, 0, [1]) == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 3, name
        assert _directories(tmp_path) == before
        assert "Traceback" not in broker.output()


def test_regression_negative_numbers_in_control_requests_are_rejected(tmp_path: Path) -> None:
    with running_broker(tmp_path, broker_id=1) as broker:
        before = _directories(tmp_path)
        assert _codes(broker, "orders", -1, [1]) == [ErrorCode.INVALID_REQUEST] * 3
        assert _codes(broker, "orders", 0, [1, -5])[:2] == [ErrorCode.INVALID_REQUEST] * 2
        assert _codes(broker, "orders", 0, [1], leader=-3)[:2] == [ErrorCode.INVALID_REQUEST] * 2
        assert _directories(tmp_path) == before
        with WireClient(broker.bootstrap_servers) as wire:
            (unknown,) = wire.ask(look_at("orders"), 12).topics
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "Traceback" not in broker.output()


def test_regression_broker_with_negative_id_in_update_metadata_is_left_out(tmp_path: Path) -> None:
    """Produce named it as the leader of every unknown partition, which old versions cannot."""
    endpoint = UpdateMetadataEndpoint(port=1, host="h", listener="PLAINTEXT", security_protocol=0)
    live = [UpdateMetadataBroker(id=-1, endpoints=[endpoint])]
    data = PartitionProduceData(index=7, records=bytes(100))
    topics = [TopicProduceData(name="unknown", partition_data=[data])]
    with (
        running_broker(tmp_path, broker_id=1) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        update = UpdateMetadataRequest(live_brokers=live, **CONTROL)
        assert wire.ask(update, 8).error_code == ErrorCode.INVALID_REQUEST
        for version in (9, 10):
            produce = ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)
            produced = wire.ask(produce, version)
            (answer,) = produced.responses[0].partition_responses
            assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert produced.node_endpoints == []
        assert "Traceback" not in broker.output()


def test_alter_partition_of_illegal_partitions_is_answered_without_traceback(
    tmp_path: Path,
) -> None:
    with (
        running_broker(tmp_path, broker_id=1) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        partition = RequestPartitionData(partition_index=-1, new_isr=[-4])
        names = [RequestTopicData(topic_name=name, partitions=[partition]) for name in ILLEGAL]
        answer = wire.ask(AlterPartitionRequest(broker_id=-1, topics=names), 1)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert "Traceback" not in broker.output()


def test_regression_a_topic_name_as_long_as_a_string_can_be_is_rejected(tmp_path: Path) -> None:
    """The error message quoted the name, and was then too long for a string itself."""
    with (
        running_broker(tmp_path, broker_id=1) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        for name in ("a" * 32767, "ü" * 16383):
            (made,) = wire.ask(create(topic(name)), 4).topics
            assert made.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            assert made.error_message is not None
            assert made.error_message.startswith("Topic name is invalid: the length of '")
        (made,) = wire.ask(create(topic("orders", retention_ms="x" * 32000)), 4).topics
        assert made.error_code == ErrorCode.INVALID_CONFIG
        config = AlterableConfig(name="k" * 32767, value="v" * 32767)
        resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (altered,) = wire.ask(request, 0).responses
        assert altered.error_code != ErrorCode.UNKNOWN_SERVER_ERROR
        assert "Traceback" not in broker.output()


def test_messages_of_errors_fit_into_a_string() -> None:
    message = ApiError(ErrorCode.INVALID_REQUEST, "😀" * 40_000).message
    assert len(message.encode()) <= 32767
