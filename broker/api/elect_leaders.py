"""Answers ElectLeaders (KIP-183, KIP-460); only the controller does.

A broker that is alone leads every partition it has a replica of, so an election is either not
needed, or has nobody to elect: the replicas that could lead instead are on brokers that are gone.
"""

from collections.abc import Iterable
from enum import IntEnum

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import NO_LEADER, MetadataCache, PartitionMetadata
from broker.model import TopicPartition
from broker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


class ElectionType(IntEnum):
    """Whom to elect: the first of the assigned replicas, or anybody who is left."""

    PREFERRED = 0
    UNCLEAN = 1


def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """What became of each partition; of all (null) only those that needed an election."""
    if request.election_type not in ElectionType.__members__.values():
        # What Kafka answers, which fails on it.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no election type {request.election_type}")
    election_type = ElectionType(request.election_type)
    metadata = context.services.metadata
    outcomes = {name: _elect(name, election_type, metadata) for name in _asked(request, metadata)}
    if request.topic_partitions is None:
        needed = {n: e for n, e in outcomes.items() if e.code != ErrorCode.ELECTION_NOT_NEEDED}
        return _respond(needed)
    return _respond(outcomes)


def _asked(request: ElectLeadersRequest, metadata: MetadataCache) -> Iterable[TopicPartition]:
    if request.topic_partitions is None:
        return [
            TopicPartition(topic.name, index)
            for topic in metadata.topics.values()
            for index in range(len(topic.partitions))
        ]
    return [
        TopicPartition(topic.topic, index)
        for topic in request.topic_partitions
        for index in topic.partitions
    ]


def _elect(name: TopicPartition, election_type: ElectionType, metadata: MetadataCache) -> ApiError:
    topic = metadata.topics.get(name.topic)
    if topic is None or not 0 <= name.partition < len(topic.partitions):
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if not _is_needed(topic.partitions[name.partition], election_type):
        return ApiError(
            ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        )
    if election_type is ElectionType.PREFERRED:
        code, strategy = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "PreferredReplica"
    else:
        code, strategy = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "OfflinePartition"
    is_unclean = "(true)" if election_type is ElectionType.UNCLEAN else ""
    return ApiError(
        code,
        f"Failed to elect leader for partition {name} under strategy "
        f"{strategy}PartitionLeaderElectionStrategy{is_unclean}",
    )


def _is_needed(partition: PartitionMetadata, election_type: ElectionType) -> bool:
    if election_type is ElectionType.PREFERRED:
        return partition.leader != partition.replicas[0]
    return partition.leader == NO_LEADER


def _respond(
    outcomes: dict[TopicPartition, ApiError], code: ErrorCode = ErrorCode.NONE
) -> ElectLeadersResponse:
    by_topic: dict[str, list[PartitionResult]] = {}
    for name, error in outcomes.items():
        result = PartitionResult(
            partition_id=name.partition,
            error_code=error.code,
            # An error of the whole request is not explained on each partition.
            error_message=None if code else error.message,
        )
        by_topic.setdefault(name.topic, []).append(result)
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=results)
            for topic, results in by_topic.items()
        ],
    )


def error_response(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    """The error of the request, and on every partition: version 0 has no other place."""
    asked = [(t.topic, index) for t in request.topic_partitions or () for index in t.partitions]
    return _respond({TopicPartition(*name): ApiError(code) for name in asked}, code)
