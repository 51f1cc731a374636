"""What the controller asks: taken in order, refused when it comes too late, answered one by one."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from broker.errors import ErrorCode
from broker.model import Uuid
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
from tests.replica.harness import NAME, TOPIC_ID, InProcessCluster, cluster

Scenario = Callable[[InProcessCluster], Awaitable[None]]
ALL = (1, 2, 3)


def run(directory: Path, scenario: Scenario) -> None:
    async def within() -> None:
        async with asyncio.timeout(20), cluster(directory) as made:
            await scenario(made)

    asyncio.run(within())


def code_of(response: LeaderAndIsrResponse) -> ErrorCode:
    """Of the one partition."""
    return ErrorCode(response.topics[0].partition_errors[0].error_code)


def stop(leader_epoch: int, *, delete: bool = False, **others: Any) -> StopReplicaRequest:
    """Stop the one partition."""
    state = StopReplicaPartitionState(
        partition_index=NAME.partition, leader_epoch=leader_epoch, delete_partition=delete
    )
    topic = StopReplicaTopicState(topic_name=NAME.topic, partition_states=[state])
    asked: dict[str, Any] = {"controller_id": 9, "controller_epoch": 1, "broker_epoch": 7}
    return StopReplicaRequest(**(asked | others), topic_states=[topic])


def stopped(response: StopReplicaResponse) -> ErrorCode:
    return ErrorCode(response.partition_errors[0].error_code)


@pytest.mark.parametrize(
    ("late", "code"),
    [
        ({"broker_epoch": 6}, ErrorCode.STALE_BROKER_EPOCH),
        ({"controller_epoch": 0}, ErrorCode.STALE_CONTROLLER_EPOCH),
    ],
)
def test_request_that_comes_too_late_changes_nothing(
    tmp_path: Path, late: dict[str, int], code: ErrorCode
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        requests = brokers[1].requests
        brokers.leader_epoch += 1
        refused = await requests.leader_and_isr(brokers.decision(2, ALL, ALL, **late))
        assert (refused.error_code, code_of(refused)) == (code, code)
        assert (await requests.stop_replica(stop(9, **late))).error_code == code
        epochs = {"controller_epoch": 1, "broker_epoch": 7} | late
        told = await requests.update_metadata(UpdateMetadataRequest(controller_id=5, **epochs))
        assert told.error_code == code
        assert brokers[1].partition.is_leader
        assert brokers[1].services.metadata.controller_id == 9

    run(tmp_path, scenario)


def test_epoch_newer_than_ours_is_taken_the_broker_may_not_have_heard_of_it(
    tmp_path: Path,
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.leader_epoch, brokers.partition_epoch = 0, 1
        request = brokers.decision(1, ALL, ALL, broker_epoch=8)
        assert code_of(await brokers[1].requests.leader_and_isr(request)) == ErrorCode.NONE

    run(tmp_path, scenario)


def test_decision_that_is_not_newer_is_refused_for_its_partition_alone(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        again = await brokers[1].requests.leader_and_isr(brokers.decision(1, ALL, ALL))
        assert again.error_code == ErrorCode.NONE
        assert code_of(again) == ErrorCode.STALE_CONTROLLER_EPOCH

    run(tmp_path, scenario)


def test_topic_of_the_same_name_with_another_id_is_not_ours(tmp_path: Path) -> None:
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

    run(tmp_path, scenario)


def test_partition_without_replica_here_is_unknown(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.leader_epoch = 0
        refused = await brokers[3].requests.leader_and_isr(brokers.decision(1, (1, 2), (1, 2)))
        assert code_of(refused) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert NAME not in brokers[3].replicas.partitions

    run(tmp_path, scenario)


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

    run(tmp_path, scenario)


def test_request_of_the_oldest_form_is_understood(tmp_path: Path) -> None:
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

    run(tmp_path, scenario)


def test_stopping_is_fenced_by_the_leader_epoch_unless_the_topic_goes(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.lead(1)
        requests = brokers[1].requests
        assert stopped(await requests.stop_replica(stop(0))) == ErrorCode.FENCED_LEADER_EPOCH
        assert stopped(await requests.stop_replica(stop(-2, delete=True))) == ErrorCode.NONE
        assert NAME not in brokers[1].replicas.partitions
        assert brokers[1].replicas.logs.get(NAME) is None

    run(tmp_path, scenario)


def test_stopped_follower_fetches_no_more_and_keeps_its_log(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("value"))
        assert stopped(await brokers[2].requests.stop_replica(stop(0))) == ErrorCode.NONE
        brokers[1].append("more")
        await asyncio.sleep(0.1)  # two long polls
        assert brokers[2].partition.log.log_end_offset == 1

    run(tmp_path, scenario)


def test_metadata_of_a_deleted_topic_is_forgotten_and_told(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        broker, told = brokers[1], []
        broker.replicas.on_deleted = told.append
        assert broker.services.metadata.names[TOPIC_ID] == NAME.topic
        await brokers.tell_metadata(1, leader=-2)
        assert told == [[NAME]]
        assert not broker.services.metadata.topics
        assert not broker.services.metadata.names

    run(tmp_path, scenario)
