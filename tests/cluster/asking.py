"""Requests to the controller of a cluster, whichever broker it is at the moment."""

from typing import Any

from broker.controller.replica_leader_election import ElectionType
from broker.model import TopicPartition
from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from broker.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from broker.protocol.schema import Request
from tests.conformance.admin_topics import create, topic
from tests.support.cluster import Cluster, wait_until
from tests.support.wire import WireClient


def the_controller(cluster: Cluster) -> int:
    """The controller's id, as soon as there is one."""
    return wait_until(cluster.controller_id, "there is a controller")


def ask_controller(cluster: Cluster, request: Request[Any]) -> Any:
    """The controller's response to a request in its latest version."""
    with WireClient(cluster.address(the_controller(cluster))) as wire:
        return wire.ask(request, request.versions[1])


def make_topic(
    cluster: Cluster, name: str, manual: dict[int, list[int]], **configs: str | None
) -> None:
    """Create a topic with these replicas, and wait until every one of them is in sync."""
    (made,) = ask_controller(cluster, create(topic(name, 1, 1, manual, **configs))).topics
    assert made.error_code == 0, made.error_message
    for index, replicas in manual.items():
        in_sync(cluster, TopicPartition(name, index), replicas)


def in_sync(cluster: Cluster, name: TopicPartition, replicas: list[int]) -> None:
    """Wait until the ISR is exactly this."""
    wait_until(
        lambda: sorted(cluster.isr(*name)) == sorted(replicas), f"{name} in sync on {replicas}"
    )


def led_by(cluster: Cluster, name: TopicPartition, *leaders: int | None) -> None:
    """Wait until one of these leads."""
    wait_until(lambda: cluster.leader(*name) in leaders, f"{name} led by {leaders}")


def delete_topic(cluster: Cluster, name: str, timeout_ms: int = 10_000) -> int:
    """Delete a topic; returns the error code."""
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=timeout_ms)
    (answer,) = ask_controller(cluster, wanted).responses
    return int(answer.error_code)


def reassign(cluster: Cluster, moves: dict[TopicPartition, list[int] | None]) -> list[int]:
    """Reassign partitions (None: cancel); returns the error codes."""
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=name.topic,
                partitions=[
                    ReassignablePartition(partition_index=name.partition, replicas=replicas)
                ],
            )
            for name, replicas in moves.items()
        ]
    )
    answer = ask_controller(cluster, request)
    assert answer.error_code == 0
    return [p.error_code for response in answer.responses for p in response.partitions]


def reassigning(cluster: Cluster) -> dict[TopicPartition, tuple[list[int], list[int], list[int]]]:
    """The reassignments in progress: replicas, adding replicas, removing replicas."""
    answer = ask_controller(cluster, ListPartitionReassignmentsRequest(topics=None))
    return {
        TopicPartition(topic.name, p.partition_index): (
            p.replicas,
            p.adding_replicas,
            p.removing_replicas,
        )
        for topic in answer.topics
        for p in topic.partitions
    }


def elect(cluster: Cluster, election_type: ElectionType, name: TopicPartition) -> int:
    """Elect a leader; returns the error code."""
    wanted = [TopicPartitions(topic=name.topic, partitions=[name.partition])]
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=wanted, timeout_ms=10_000
    )
    (result,) = ask_controller(cluster, request).replica_election_results
    return int(result.partition_result[0].error_code)
