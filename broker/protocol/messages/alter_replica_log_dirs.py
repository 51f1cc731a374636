"""Move replicas between log directories of one broker (KIP-113).

Versions:
    v2 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class AlterReplicaLogDirTopic(Struct):
    name: str = wire("string")
    partitions: list[int] = wire("[]int32")


class AlterReplicaLogDir(Struct):
    path: str = wire("string")
    topics: list[AlterReplicaLogDirTopic] = wire([AlterReplicaLogDirTopic])


class AlterReplicaLogDirsRequest(
    Request["AlterReplicaLogDirsResponse"], api_key=34, versions=(0, 2), flexible=2
):
    """The target directory of each replica."""

    dirs: list[AlterReplicaLogDir] = wire([AlterReplicaLogDir])


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = wire("string")
    partitions: list[AlterReplicaLogDirPartitionResult] = wire([AlterReplicaLogDirPartitionResult])


class AlterReplicaLogDirsResponse(Response, versions=(0, 2), flexible=2):
    """The error of each partition."""

    throttle_time_ms: int = wire("int32")
    results: list[AlterReplicaLogDirTopicResult] = wire([AlterReplicaLogDirTopicResult])
