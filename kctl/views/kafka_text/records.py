"""The output of kafka-get-offsets, kafka-delete-records and kafka-log-dirs."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from broker.errors import ErrorCode
from broker.model import TopicPartition
from kctl.model.log_dirs import LogDir, Replica
from kctl.model.offsets import Deletion
from kctl.views.kafka_text.java_maps import hash_map_order, names_in_map_order
from kctl.views.kafka_text.java_order import partition_hash

_EXCEPTIONS = {
    ErrorCode.OFFSET_OUT_OF_RANGE: (
        "OffsetOutOfRangeException",
        "The requested offset is not within the range of offsets maintained by the server.",
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
    ErrorCode.LEADER_NOT_AVAILABLE: (
        "LeaderNotAvailableException",
        "There is no leader for this topic-partition as we are in the middle of a leadership"
        " election.",
    ),
    ErrorCode.REQUEST_TIMED_OUT: ("TimeoutException", "The request timed out."),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (
        "TopicAuthorizationException",
        "Topic authorization failed.",
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "ClusterAuthorizationException",
        "Cluster authorization failed.",
    ),
    ErrorCode.POLICY_VIOLATION: (
        "PolicyViolationException",
        "Request parameters do not satisfy the configured policy.",
    ),
    ErrorCode.KAFKA_STORAGE_ERROR: (
        "KafkaStorageException",
        "Disk error when trying to access log file on the disk.",
    ),
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "UnknownServerException",
        "The server experienced an unexpected error when processing the request.",
    ),
}
"""Java's exception classes and messages for error codes."""


def offset_lines(offsets: Mapping[TopicPartition, int]) -> Iterator[str]:
    """The lines of kafka-get-offsets, sorted as strings: `t-10` comes before `t-2`."""
    for partition in sorted(offsets, key=str):
        yield f"{partition.topic}:{partition.partition}:{offsets[partition]}"


def deletion_lines(deletions: Sequence[Deletion]) -> Iterator[str]:
    """The lines of kafka-delete-records; `deletions` in the order of the file.

    The tool reads the file with computeIfAbsent, which inserts a key at the head of its bucket.
    """
    yield "Executing records delete operation"
    yield "Records delete operation completed:"
    by_partition = {deletion.partition: deletion for deletion in deletions}
    for partition in hash_map_order(reversed(by_partition), partition_hash):
        deletion = by_partition[partition]
        if deletion.error:
            yield f"partition: {partition}\terror: {java_exception(deletion.error)}"
        else:
            yield f"partition: {partition}\tlow_watermark: {deletion.low_watermark}"


def log_dir_lines(log_dirs: Sequence[LogDir], topics: Collection[str] = ()) -> Iterator[str]:
    """The lines of kafka-log-dirs for these topics (empty: all).

    `log_dirs` has all replicas: the tool receives all of them, and their number determines the
    order.
    """
    by_broker: dict[int, list[LogDir]] = {}
    for log_dir in log_dirs:
        by_broker.setdefault(log_dir.broker_id, []).append(log_dir)
    yield "Querying brokers for log directories information"
    received = hash_map_order(by_broker, int)
    yield f"Received log directory information from brokers {','.join(map(str, received))}"
    ordered = hash_map_order(by_broker, int, capacity=len(by_broker))
    document = {
        "brokers": [
            {"broker": broker, "logDirs": _dirs(by_broker[broker], topics)} for broker in ordered
        ],
        "version": 1,
    }
    yield json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def java_exception(code: ErrorCode) -> str:
    """Class and message, as Java prints an exception."""
    name, message = _EXCEPTIONS.get(code, _EXCEPTIONS[ErrorCode.UNKNOWN_SERVER_ERROR])
    return f"org.apache.kafka.common.errors.{name}: {message}"


def _dirs(log_dirs: Sequence[LogDir], topics: Collection[str]) -> list[dict[str, object]]:
    by_path = {log_dir.path: log_dir for log_dir in log_dirs}
    ordered = [by_path[path] for path in names_in_map_order(by_path, capacity=len(by_path))]
    return [
        {
            "partitions": _replicas(log_dir.replicas, topics),
            "error": java_exception(log_dir.error).split(":")[0] if log_dir.error else None,
            "logDir": log_dir.path,
        }
        for log_dir in ordered
    ]


def _replicas(replicas: Sequence[Replica], topics: Collection[str]) -> list[dict[str, object]]:
    by_partition = {replica.partition: replica for replica in replicas}
    known = hash_map_order(by_partition, partition_hash)  # the tool filters one map into another
    kept = [partition for partition in known if not topics or partition.topic in topics]
    return [
        {
            "partition": str(partition),
            "size": by_partition[partition].size_bytes,
            "offsetLag": by_partition[partition].offset_lag,
            "isFuture": by_partition[partition].is_future,
        }
        for partition in hash_map_order(kept, partition_hash)
    ]
