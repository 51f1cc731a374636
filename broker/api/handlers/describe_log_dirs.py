"""Handle DescribeLogDirs (KIP-113): sizes of replicas in each log directory, lags of copies.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible
    v3 an error for the whole response
    v4 total and usable bytes (KIP-827)

Deliberately missing: nothing.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from broker.replica.manager import ReplicaManager
from broker.security.acls import AclOperation

_UNKNOWN_LAG = -1


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    """Describe every directory, with the requested partitions in it (null: all of them)."""
    authorize_cluster(context, AclOperation.DESCRIBE)
    replicas = context.services.replicas
    logs = [*replicas.logs.logs.values(), *replicas.logs.future_logs.values()]
    if request.topics is not None:
        asked = {TopicPartition(t.topic, index) for t in request.topics for index in t.partitions}
        logs = [log for log in logs if log.partition in asked]
    online = [_describe(log_dir.path, logs, replicas) for log_dir in replicas.logs.online_dirs]
    offline = [
        DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path))
        for path in replicas.logs.offline_dirs
    ]
    return DescribeLogDirsResponse(results=online + offline)


def _describe(
    path: Path, logs: Iterable[PartitionLog], replicas: ReplicaManager
) -> DescribeLogDirsResult:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in logs:
        if log.log_dir == path:
            partitions = by_topic.setdefault(log.partition.topic, [])
            partitions.append(_describe_log(log, replicas))
    usage = shutil.disk_usage(path)
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=[
            DescribeLogDirsTopic(name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
        total_bytes=usage.total,
        usable_bytes=usage.free,
    )


def _describe_log(log: PartitionLog, replicas: ReplicaManager) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=log.partition.partition,
        partition_size=log.size_in_bytes,
        offset_lag=_lag(log, replicas),
        is_future_key=log.is_future,
    )


def _lag(log: PartitionLog, replicas: ReplicaManager) -> int:
    """Lag of a future log behind the current one, or of the current one behind the watermark."""
    partition = replicas.partitions.get(log.partition)
    if partition is None:
        return _UNKNOWN_LAG
    if log.is_future:
        return partition.log.log_end_offset - log.log_end_offset
    return max(partition.log.high_watermark - log.log_end_offset, 0)


def error_response(request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
    """Only the error."""
    return DescribeLogDirsResponse(error_code=code)
