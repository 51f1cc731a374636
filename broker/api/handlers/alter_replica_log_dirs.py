"""Handle AlterReplicaLogDirs (KIP-113): move replicas between the log directories of this broker.

The response says whether a move was started; DescribeLogDirs shows its progress.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible

Deliberately missing: nothing.
"""

from pathlib import Path

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from broker.security.acls import AclOperation


def handle(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Start every move; a failure concerns only its partition."""
    authorize_cluster(context, AclOperation.ALTER)
    return _respond(
        {name: _begin(name, path, context) for name, path in _destinations(request).items()}
    )


def _destinations(request: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    return {
        TopicPartition(topic.name, index): log_dir.path
        for log_dir in request.dirs
        for topic in log_dir.topics
        for index in topic.partitions
    }


def _begin(name: TopicPartition, path: str, context: RequestContext) -> ErrorCode:
    services = context.services
    try:
        services.replicas.alter_log_dirs.alter(name, Path(path))
    except ApiError as error:
        is_known = services.metadata.has_partition(*name)
        if error.code == ErrorCode.REPLICA_NOT_AVAILABLE and not is_known:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error.code
    return ErrorCode.NONE


def _respond(codes: dict[TopicPartition, ErrorCode]) -> AlterReplicaLogDirsResponse:
    by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for name, code in codes.items():
        result = AlterReplicaLogDirPartitionResult(partition_index=name.partition, error_code=code)
        by_topic.setdefault(name.topic, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ]
    )


def error_response(
    request: AlterReplicaLogDirsRequest, code: ErrorCode
) -> AlterReplicaLogDirsResponse:
    """The error on every partition."""
    return _respond(dict.fromkeys(_destinations(request), code))
