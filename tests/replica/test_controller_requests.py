"""Requests of the controller: stale ones are refused, the others have a result per partition."""

import asyncio
from pathlib import Path
from typing import Any, TypedDict

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition, Uuid
from broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from broker.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from broker.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.support.in_process_cluster import NAME, TOPIC_ID, InProcessCluster, run_in_cluster

ALL = (1, 2, 3)


def code_of(response: LeaderAndIsrResponse) -> ErrorCode:
    """The error code of the only partition."""
    return ErrorCode(response.topics[0].partition_errors[0].error_code)


class Epochs(TypedDict):
    """The epochs in every request of the controller."""

    controller_epoch: int
    broker_epoch: int


def stop(leader_epoch: int, *, delete: bool = False, **others: Any) -> StopReplicaRequest:
    """A request to stop the only partition."""
    state = StopReplicaPartitionState(
        partition_index=NAME.partition, leader_epoch=leader_epoch, delete_partition=delete
    )
    topic = StopReplicaTopicState(topic_name=NAME.topic, partition_states=[state])
    asked: dict[str, Any] = {"controller_id": 9, "controller_epoch": 1, "broker_epoch": 7}
    return StopReplicaRequest(**(asked | others), topic_states=[topic])


def stopped(response: StopReplicaResponse) -> ErrorCode:
    return ErrorCode(response.partition_errors[0].error_code)


@pytest.mark.parametrize(
    ("controller_epoch", "broker_epoch", "code"),
    [
        (1, 6, ErrorCode.STALE_BROKER_EPOCH),
        (0, 7, ErrorCode.STALE_CONTROLLER_EPOCH),
    ],
)
def test_stale_request_is_refused_and_changes_nothing(
    tmp_path: Path, controller_epoch: int, broker_epoch: int, code: ErrorCode
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        requests = brokers[1].requests
        brokers.leader_epoch += 1
        epochs = Epochs(controller_epoch=controller_epoch, broker_epoch=broker_epoch)
        refused = await requests.leader_and_isr(brokers.decision(2, ALL, ALL, **epochs))
        assert (refused.error_code, code_of(refused)) == (code, code)
        assert (await requests.stop_replica(stop(9, **epochs))).error_code == code
        told = await requests.update_metadata(UpdateMetadataRequest(controller_id=5, **epochs))
        assert told.error_code == code
        assert brokers[1].partition.is_leader
        assert brokers[1].services.metadata.controller_id == 9

    run_in_cluster(tmp_path, scenario)


def test_broker_epoch_newer_than_the_known_one_is_accepted(
    tmp_path: Path,
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.leader_epoch, brokers.partition_epoch = 0, 1
        request = brokers.decision(1, ALL, ALL, broker_epoch=8)
        assert code_of(await brokers[1].requests.leader_and_isr(request)) == ErrorCode.NONE

    run_in_cluster(tmp_path, scenario)


def test_decision_without_a_newer_leader_epoch_is_refused_for_its_partition(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        again = await brokers[1].requests.leader_and_isr(brokers.decision(1, ALL, ALL))
        assert again.error_code == ErrorCode.NONE
        assert code_of(again) == ErrorCode.STALE_CONTROLLER_EPOCH

    run_in_cluster(tmp_path, scenario)


def test_topic_of_the_same_name_with_another_id_is_refused(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        brokers.leader_epoch += 1
        request = brokers.decision(1, ALL, ALL)
        topic = LeaderAndIsrTopicState(
            topic_name=NAME.topic,
            topic_id=Uuid(b"of another topic"),
            partition_states=request.topic_states[0].partition_states,
        )
        other = LeaderAndIsrRequest(controller_epoch=1, broker_epoch=7, topic_states=[topic])
        refused = await brokers[1].requests.leader_and_isr(other)
        assert code_of(refused) == ErrorCode.INCONSISTENT_TOPIC_ID

    run_in_cluster(tmp_path, scenario)


def test_partition_without_a_replica_on_this_broker_is_unknown(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.leader_epoch = 0
        refused = await brokers[3].requests.leader_and_isr(brokers.decision(1, (1, 2), (1, 2)))
        assert code_of(refused) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert NAME not in brokers[3].replicas.partitions

    run_in_cluster(tmp_path, scenario)


def test_offline_partition_stays_offline(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        (log_dir,) = brokers[1].replicas.logs.online_dirs
        assert brokers[1].replicas.log_dir_failed(log_dir.path) == [NAME]
        brokers.leader_epoch += 1
        requests = brokers[1].requests
        refused = await requests.leader_and_isr(brokers.decision(1, ALL, ALL))
        assert code_of(refused) == ErrorCode.KAFKA_STORAGE_ERROR
        assert stopped(await requests.stop_replica(stop(9))) == ErrorCode.KAFKA_STORAGE_ERROR

    run_in_cluster(tmp_path, scenario)


def test_requests_of_version_0_are_understood(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        state = LeaderAndIsrPartitionState(
            topic_name=NAME.topic, leader=1, leader_epoch=0, isr=[1], replicas=[1]
        )
        request = LeaderAndIsrRequest(ungrouped_partition_states=[state])
        assert code_of(await brokers[1].requests.leader_and_isr(request)) == ErrorCode.NONE
        assert brokers[1].partition.is_leader
        topic = StopReplicaTopicV1(name=NAME.topic, partition_indexes=[0])
        old = StopReplicaRequest(delete_partitions=True, topics=[topic])
        assert stopped(await brokers[1].requests.stop_replica(old)) == ErrorCode.NONE
        assert not brokers[1].replicas.partitions

    run_in_cluster(tmp_path, scenario)


def test_stop_replica_is_fenced_by_the_leader_epoch_unless_the_topic_is_deleted(
    tmp_path: Path,
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.lead(1)
        requests = brokers[1].requests
        assert stopped(await requests.stop_replica(stop(0))) == ErrorCode.FENCED_LEADER_EPOCH
        assert stopped(await requests.stop_replica(stop(-2, delete=True))) == ErrorCode.NONE
        assert NAME not in brokers[1].replicas.partitions
        assert brokers[1].replicas.logs.get(NAME) is None

    run_in_cluster(tmp_path, scenario)


def test_stopped_follower_does_not_fetch_and_keeps_its_log(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("value"))
        assert stopped(await brokers[2].requests.stop_replica(stop(0))) == ErrorCode.NONE
        brokers[1].append("more")
        await asyncio.sleep(0.1)  # two long polls
        assert brokers[2].partition.log.log_end_offset == 1

    run_in_cluster(tmp_path, scenario)


def test_deleted_topic_is_removed_from_the_metadata_and_reported(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        broker = brokers[1]
        told: list[list[TopicPartition]] = []
        broker.replicas.on_deleted = told.append
        assert broker.services.metadata.names[TOPIC_ID] == NAME.topic
        await brokers.tell_metadata(1, leader=-2)
        assert told == [[NAME]]
        assert not broker.services.metadata.topics
        assert not broker.services.metadata.names

    run_in_cluster(tmp_path, scenario)
