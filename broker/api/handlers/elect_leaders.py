"""Handle ElectLeaders (KIP-183); controller only.

Versions:
    v1 unclean elections (KIP-460)
    v2 flexible

Deliberately missing: nothing.
"""

from collections.abc import Iterable, Mapping

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.controller.replica_leader_election import ElectionType
from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import MetadataCache
from broker.model import TopicPartition
from broker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from broker.security.acls import AclOperation


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Elect leaders of the partitions; null requests all, and lists those that needed it."""
    if request.election_type not in ElectionType.__members__.values():
        # Kafka fails on it, with this code.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no election type {request.election_type}")
    authorize_cluster(context, AclOperation.ALTER)
    asked = _asked(request, context.services.metadata)
    outcomes = await context.services.controller.elect_leaders(
        asked, ElectionType(request.election_type)
    )
    if request.topic_partitions is None:
        return _respond({n: e for n, e in outcomes.items() if not _is_needless(e)})
    return _respond(outcomes)


def _is_needless(error: ApiError | None) -> bool:
    return error is not None and error.code == ErrorCode.ELECTION_NOT_NEEDED


def _asked(request: ElectLeadersRequest, metadata: MetadataCache) -> Iterable[TopicPartition]:
    if request.topic_partitions is None:
        return [
            TopicPartition(topic.name, index)
            for topic in metadata.topics.values()
            for index in topic.partitions
        ]
    return [
        TopicPartition(topic.topic, index)
        for topic in request.topic_partitions
        for index in topic.partitions
    ]


def _respond(
    outcomes: Mapping[TopicPartition, ApiError | None], code: ErrorCode = ErrorCode.NONE
) -> ElectLeadersResponse:
    by_topic: dict[str, list[PartitionResult]] = {}
    for name, error in outcomes.items():
        result = PartitionResult(
            partition_id=name.partition,
            error_code=error.code if error else ErrorCode.NONE,
            # An error of the whole request has no message on its partitions.
            error_message=error.message if error and not code else None,
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
