"""Handle DescribeProducers (KIP-664): list the active producers of partitions.

Any replica answers, not only the leader. A producer with an open transaction is listed with the
offset at which that transaction starts.

Deliberately missing: nothing.
"""

from broker.api.authorization import MESSAGES, unauthorized
from broker.api.context import RequestContext
from broker.api.duplicates import remove_duplicates
from broker.api.partitions import split_by_existence
from broker.errors import ApiError, ErrorCode
from broker.log.producer_entry import ProducerEntry
from broker.model import TopicPartition
from broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from broker.security.acls import AclOperation
from broker.topic_names import name_problem

_NO_TRANSACTION = -1
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    """Describe one partition after the other."""
    remove_duplicates(request)
    legal = (topic.name for topic in request.topics if name_problem(topic.name) is None)
    denied = unauthorized(context, AclOperation.READ, legal)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _failed(index, _DENIED, MESSAGES[_DENIED])
                    if topic.name in denied
                    else _describe(topic.name, index, context)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, context: RequestContext) -> PartitionResponse:
    problem = name_problem(topic)
    if problem is not None:
        return _failed(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    try:
        log = context.services.replicas.find(topic, index).log
    except ApiError as error:
        _, unknown = split_by_existence([TopicPartition(topic, index)], context)
        # It exists on other brokers: the client refreshes its metadata.
        return _failed(
            index, error.code if unknown else ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[_producer(entry) for entry in log.active_producers],
    )


def _producer(entry: ProducerEntry) -> ProducerState:
    first_offset = entry.current_txn_first_offset
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=_NO_TRANSACTION if first_offset is None else first_offset,
    )


def _failed(index: int, code: ErrorCode, message: str | None = None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message)


def error_response(request: DescribeProducersRequest, code: ErrorCode) -> DescribeProducersResponse:
    """The error on every partition."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_failed(index, code) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )
