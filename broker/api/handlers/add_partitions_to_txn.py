"""Handle AddPartitionsToTxn (KIP-98): add partitions to a transaction, all of them or none.

Producers send versions up to 3, with one transaction. Brokers send version 4 and later, with many
transactions, mostly to verify that a partition they are about to append to was added (KIP-890).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)
    v3 flexible
    v4 many transactions, each to be changed or only verified (KIP-890)
    v5 TRANSACTION_ABORTABLE

Deliberately missing: nothing.
"""

from collections.abc import Iterable, Mapping

from broker.api.authorization import authorize_cluster, authorize_transactional_id, unauthorized
from broker.api.context import RequestContext
from broker.api.partitions import split_by_existence
from broker.api.producer_errors import fencing_error
from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from broker.security.acls import AclOperation
from broker.topic_names import INTERNAL_TOPICS

_KNOWS_FENCED = 2
_FIRST_VERSION_OF_BATCHES = 4

_Errors = Mapping[TopicPartition, ErrorCode]


async def handle(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse:
    """Handle one transaction up to version 3, many from version 4 on."""
    if context.api_version < _FIRST_VERSION_OF_BATCHES:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        authorize_transactional_id(context, AclOperation.WRITE, transaction.transactional_id)
        errors = _denied(transaction, context) or await _add(transaction, context)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_results(transaction.topics, errors)
        )
    authorize_cluster(context, AclOperation.CLUSTER_ACTION)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=_results(transaction.topics, await _add(transaction, context)),
            )
            for transaction in request.transactions
        ]
    )


def _denied(transaction: AddPartitionsToTxnTransaction, context: RequestContext) -> _Errors:
    """The errors of all partitions if the client may not write to one of the topics; else none.

    No client may add a partition of an internal topic.
    """
    names = _names(transaction.topics)
    internal = {name.topic for name in names if name.topic in INTERNAL_TOPICS}
    asked = [name.topic for name in names if name.topic not in internal]
    denied = internal.union(unauthorized(context, AclOperation.WRITE, asked))
    if not denied:
        return {}
    allowed, unknown = split_by_existence([n for n in names if n.topic not in denied], context)
    return {
        **dict.fromkeys(allowed, ErrorCode.OPERATION_NOT_ATTEMPTED),
        **unknown,
        **{n: ErrorCode.TOPIC_AUTHORIZATION_FAILED for n in names if n.topic in denied},
    }


async def _add(transaction: AddPartitionsToTxnTransaction, context: RequestContext) -> _Errors:
    """The error of each partition. If one does not exist, none is added."""
    names = _names(transaction.topics)
    known, unknown = split_by_existence(names, context)
    if unknown:
        return {**dict.fromkeys(known, ErrorCode.OPERATION_NOT_ATTEMPTED), **unknown}
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    coordinator = context.services.transactions
    try:
        if transaction.verify_only:
            return coordinator.verify_partitions(transaction.transactional_id, producer, names)
        await coordinator.add_partitions(transaction.transactional_id, producer, names)
    except ApiError as error:
        code = fencing_error(error.code, context.api_version, since=_KNOWS_FENCED)
        return dict.fromkeys(names, code)
    return dict.fromkeys(names, ErrorCode.NONE)


def _names(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], errors: _Errors
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=errors[TopicPartition(topic.name, index)],
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def error_response(
    request: AddPartitionsToTxnRequest, code: ErrorCode
) -> AddPartitionsToTxnResponse:
    """The error on every partition; from version 4 on, of the whole request."""
    topics = request.v3_and_below_topics
    errors = dict.fromkeys(_names(topics), code)
    return AddPartitionsToTxnResponse(
        error_code=code, results_by_topic_v3_and_below=_results(topics, errors)
    )
