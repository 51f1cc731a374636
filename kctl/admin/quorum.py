"""The KRaft quorum of a cluster."""

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
)
from kctl.cli.errors import CliError
from kctl.model.quorum import FOLLOWER, LEADER, OBSERVER, Quorum, QuorumReplica

_METADATA_TOPIC = "__cluster_metadata"


async def describe_quorum(client: Client) -> Quorum:
    """The quorum; CliError for clusters that use ZooKeeper."""
    quorum = await find_quorum(client)
    if quorum is None:
        raise not_kraft("it has no quorum of controllers")
    return quorum


async def find_quorum(client: Client) -> Quorum | None:
    """The quorum; None for clusters that use ZooKeeper, whose brokers lack the API."""
    partition = RequestPartitionData(partition_index=0)
    topic = RequestTopicData(topic_name=_METADATA_TOPIC, partitions=[partition])
    try:
        answer = await client.send(DescribeQuorumRequest(topics=[topic]))
    except ApiError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            return None
        raise
    return _read(answer)


def not_kraft(consequence: str) -> CliError:
    """The error of commands that need a KRaft cluster."""
    return CliError(
        f"the cluster is not in KRaft mode: {consequence}",
        "its brokers use ZooKeeper; kctl cluster shows their controller",
    )


def _read(answer: DescribeQuorumResponse) -> Quorum:
    if answer.error_code:
        raise ApiError(ErrorCode(answer.error_code), answer.error_message or "")
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise ApiError(ErrorCode(found.error_code), found.error_message or "")
    return Quorum(
        leader_id=found.leader_id,
        leader_epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        voters=tuple(
            _replica(one, LEADER if one.replica_id == found.leader_id else FOLLOWER)
            for one in found.current_voters
        ),
        observers=tuple(_replica(one, OBSERVER) for one in found.observers),
        endpoints={
            node.node_id: tuple(f"{one.name}://{one.host}:{one.port}" for one in node.listeners)
            for node in answer.nodes
        },
    )


def _replica(state: ReplicaState, role: str) -> QuorumReplica:
    return QuorumReplica(
        id=state.replica_id,
        directory_id=state.replica_directory_id,
        role=role,
        log_end_offset=state.log_end_offset,
        last_fetch_ms=_time(state.last_fetch_timestamp),
        last_caught_up_ms=_time(state.last_caught_up_timestamp),
    )


def _time(timestamp_ms: int) -> int | None:
    return timestamp_ms if timestamp_ms >= 0 else None
